COMMANDS = {
    "ingest": "Add documents or update them.",
    "sync": "Keep the documents in step with a folder, website, bucket, WebDAV folder or loader.",
    "documents": "List the documents, or the files that wait to be read.",
    "delete": "Delete documents, or erase documents and threads everywhere.",
}
