"""A significance test for two profiles that answered the same questions."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

RESAMPLES = 9999
BATCH = 500
"""Resamples computed at once, which bounds the memory for many questions."""


def find_p_value(before: Sequence[float], after: Sequence[float]) -> float:
    """Return the two-sided p-value of a paired permutation test of the mean difference. Equal input gives equal output.

    Under the null hypothesis the sign of each difference is random (Smucker, Allan & Carterette, A Comparison of
    Statistical Significance Tests for Information Retrieval Evaluation, CIKM 2007, section 3.2). With few questions all
    signs are tried. Otherwise the p-value is (b + 1) / (m + 1) for b of m random resamples that differ at least as much
    (Phipson & Smyth, Permutation P-values Should Never Be Zero, 2010).
    """
    differences = np.array(after, dtype=float) - np.array(before, dtype=float)
    if not differences.any():
        return 1.0
    # Sums of the same numbers in another order may differ in their last bits.
    threshold = float(abs(differences.sum()) - 1e-9 * np.abs(differences).sum())
    if 2 ** len(differences) <= RESAMPLES:
        signs = _list_all_signs(len(differences))
        return _count_extreme(signs, differences, threshold) / len(signs)
    random = np.random.default_rng(0)
    extreme = 0
    for start in range(0, RESAMPLES, BATCH):
        sample = random.choice((-1.0, 1.0), size=(min(BATCH, RESAMPLES - start), len(differences)))
        extreme += _count_extreme(sample, differences, threshold)
    return (extreme + 1) / (RESAMPLES + 1)


def _count_extreme(signs: NDArray[np.float64], differences: NDArray[np.float64], threshold: float) -> int:
    return int((np.abs(signs @ differences) >= threshold).sum())


def _list_all_signs(length: int) -> NDArray[np.float64]:
    """Return every combination of signs, of shape (2 ** length, length)."""
    bits = np.arange(2**length)[:, None] >> np.arange(length) & 1
    return np.where(bits, -1.0, 1.0).astype(np.float64)
