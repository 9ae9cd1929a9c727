/** The steps of a run, in words. @type {Record<string, string>} */
export const STEPS = {
  route: "Reading the question",
  retrieve: "Searching",
  rerank: "Ranking what was found",
  grade: "Judging whether it answers",
  reformulate: "Searching in other words",
  generate: "Writing",
  verify: "Checking every statement",
  reconcile: "Correcting",
  converse: "Answering",
  decline: "Answering",
  describe: "Looking through the library",
  ask_back: "Asking back",
  abstain: "Finding nothing that answers",
  degrade: "Falling back",
};
