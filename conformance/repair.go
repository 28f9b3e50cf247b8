package conformance

import "maps"

// repairs returns the advice for each case by id: the usual cause of a failure and the change
// in the server, in one paragraph. Cases with a Fix of their own are not among them.
func repairs() map[string]string {
	all := map[string]string{}
	for _, part := range []map[string]string{
		replayRepairs(), conflictRepairs(), scopeRepairs(), inflightRepairs(), keyRepairs(), outcomeRepairs(), netRepairs(), lifeRepairs(),
	} {
		maps.Copy(all, part)
	}
	return all
}

// replayRepairs returns the advice for each failed case of the group replay, by its id.
func replayRepairs() map[string]string {
	return map[string]string{
		"replay/answered": "Look the key up before the handler runs, and answer with what is stored. Usual causes: the middleware reads another header " +
			"(see --key-header), is mounted on other routes, deletes the key when the request ends (a lock released in finally), or treats every repeat as an error.",
		"replay/effects-once": "Record the key before the work, in one atomic step (INSERT under a UNIQUE constraint, or SET NX), and keep the record after the work has ended. " +
			"Usual causes: only a lock that is released in finally, a key that is read under another name, or a record that is written only after the answer was sent.",
		"replay/status": "Store the status together with the body, and replay it as it was: 201 stays 201. " +
			"Usual cause: only the body is stored, and the replay is sent with the framework's default of 200.",
		"replay/body-bytes": "Store the bytes that were sent, at the lowest layer that sees them, and replay them unchanged. " +
			"Usual causes: the decoded object is stored and encoded again, only one way of answering is captured (res.json and not res.send), or a stream is read to its end before it is stored.",
		"replay/headers": "Store the header fields that describe the answer (Content-Type, Location, Content-Encoding, ETag) with it, and send them with the replay. " +
			"Usual cause: status and body are stored, headers are not.",
		"replay/no-set-cookie": "Leave Set-Cookie out of what is stored. Usual cause: all header fields are copied, and with them the session of whoever came first.",
		"replay/marker":        "Nothing has to change. A header such as Idempotent-Replayed: true helps whoever reads logs.",
		"replay/not-marked-when-first": "Set the mark only where the answer comes from the store. Usual cause: the header is set before it is known whether the key was found, " +
			"or is stored with the first answer.",
		"replay/after-100-requests": "Keep records for the whole window, in a store that does not drop them under load. " +
			"Usual causes: an in-process cache with a bound on its entries, or a Redis that evicts keys.",
		"replay/large-body": "Store the whole answer, or refuse to protect what is too large to store, loudly and before it is executed. " +
			"Usual causes: a column that cuts text, a limit of the cache on one value, or a hash over the beginning of a body only.",
		"replay/other-headers": "Compare the operation, the caller and the body, and no header that changes from one attempt to the next (Date, User-Agent, traceparent, signatures). " +
			"Usual cause: the fingerprint covers all header fields.",
		"replay/empty-body-204": "Store that there was no body, and replay the status without one. Usual cause: an empty body is taken for no record, or is replayed as the text null or undefined.",
		"replay/binary":         "Store bytes, not text. Usual cause: the body passes through a character set, or through JSON, on its way to the store.",
		"replay/gzip": "Store either the plain bytes without Content-Encoding, or the compressed ones with it. " +
			"Usual cause: the idempotency layer stands outside the compression and stores only half of the pair.",
	}
}

// conflictRepairs returns the advice for each failed case of the group conflict, by its id.
func conflictRepairs() map[string]string {
	const equality = "Compare what was sent in one way, and say in the documentation which: the bytes, or the decoded JSON. Either way a body that is not taken for the same " +
		"request is refused under its key, and never executed. Usual cause: the lookup includes the hash, so that a body with another hash finds nothing and runs."
	return map[string]string{
		"conflict/not-executed": "Look the key up by caller, operation and key alone, store a hash of the body beside it, and refuse a request whose hash differs. " +
			"Usual causes: the hash is a part of the lookup, so that another body is another key, or no hash is kept and the record was released.",
		"conflict/not-silent": "Store a hash of the request with the key (SHA-256 of the body's bytes is enough), compare it on each repeat, and answer 422 where it differs. " +
			"Usual cause: no hash is stored, or it is stored and never compared.",
		"conflict/rejected-status": "Answer 422 (Unprocessable Content), or the status that the documentation names, so that clients can tell a reused key from one that is in progress. " +
			"Usual cause: one status, 409 or 400, for both.",
		"conflict/original-survives": "Leave the record as it is when a mismatch is refused. Usual cause: the refusal runs through the same clean-up as a failed request, which deletes or overwrites the record.",
		"conflict/error-shape":       "Answer with application/problem+json, or with a Link to the documentation of the key. Usual cause: a plain text of the middleware.",
		"conflict/no-leak": "Say that the key was used with another request, and nothing of that request. " +
			"Usual cause: an error that prints both hashes, both bodies or the stored answer for debugging.",
		"conflict/late-difference": "Hash the whole body, however large. Usual cause: the hash covers a prefix, or the body up to a parser's limit.",
		"conflict/json-respelled":  equality,
		"conflict/null-vs-absent":  equality,
		"conflict/1.0-vs-1":        equality,
		"conflict/array-order":     equality,
	}
}

// scopeRepairs returns the advice for each failed case of the group scope, by its id.
func scopeRepairs() map[string]string {
	return map[string]string{
		"scope/other-path-not-answered": "Make method and path a part of what a key is looked up by, or of the hash that is compared. " +
			"Usual cause: the store is asked for the bare header value, and one instance serves all routes.",
		"scope/other-resource-empty-body": "Make the path with its ids a part of what is compared, not the route's pattern. " +
			"Usual causes: only the body is hashed, and it is empty; or the lookup uses the pattern (/payments/:id/cancel).",
		"scope/other-method": "Make the method a part of what a key is looked up by, or of the hash that is compared. Usual cause: only path and body are.",
		"scope/other-query":  "Nothing has to change where the query does not change the operation. Where it does, make it a part of what is compared.",
		"scope/other-principal-not-answered": "Make the authenticated caller (account or user id, not the token) a part of what a key is looked up by. " +
			"Usual cause: the key is global, so that whoever guesses or repeats it is given another customer's answer.",
		"scope/fresh-key-executes":       "Look operations up by their key only. Usual cause: requests are recognised by the hash of their body, so that a second order of the same goods is taken for a repeat.",
		"scope/safe-method-not-answered": "Leave GET out of the idempotency layer. Usual cause: it is mounted for every method, so that a read is answered with what a write once returned.",
		"scope/head-options":             "Leave HEAD and OPTIONS out of the idempotency layer: pass them on, and store nothing. Usual cause: it is mounted for every method.",
	}
}

// inflightRepairs returns the advice for each failed case of the group inflight, by its id.
func inflightRepairs() map[string]string {
	const wait = "Answer 409 (Conflict) with Retry-After in seconds while the first request is at work. "
	const hang = "Let the work go on when its caller hangs up, or settle the key in a place that runs in every case (a deferred function, finally), " +
		"not in an event of the answer that never comes. "
	return map[string]string{
		"inflight/once": "Take the key in one atomic step before the work: INSERT under a UNIQUE constraint, SET NX, or a lock that is held until the result is stored. " +
			"Usual cause: read first and write later (GET, then SET; SELECT, then INSERT), between which a second request reads too.",
		"inflight/converges": "Store only the outcome of the work under the key, and give every caller that. " +
			"Usual causes: the 409 of a duplicate overwrites the record, or two executions each store theirs.",
		"inflight/status-or-wait":       wait + "To wait and then answer with the outcome is right too. Usual cause: a duplicate falls into the general error handler, or is answered as a success.",
		"inflight/retry-after-present":  wait + "Usual cause: the status alone, or the number in the body, where no client looks.",
		"inflight/retry-after-sane":     "Derive Retry-After from how long the work takes, as a rule 1. Usual cause: the lifetime of the lock is sent.",
		"inflight/retry-after-honoured": "Ask for a wait after which the outcome is there, and store the outcome before the answer is sent. Usual cause: a record that stays in progress until a timer runs out.",
		"inflight/other-body": "Compare the hash of the body already while the first request is at work, and store that hash when the key is taken. " +
			"Usual cause: the hash is written with the result, so that there is nothing to compare with before.",
		"inflight/burst": "Take the key with one atomic operation of the store, and never with two. Usual causes: GET then SET, an in-process lock that is made per request, " +
			"or a lock that is given back before the result is stored, so that the next in the queue finds neither.",
		"inflight/around-completion": "Store the result before the lock is given back, and look for a result again after the lock was had. " +
			"Usual cause: the lock is released first, or in finally, and the result is written behind it.",
		"inflight/follower-leaves": "Count only the request that took the key as its owner. Usual cause: whoever ends deletes the lock, also a duplicate that never had it; keep a token in the lock and compare it before deleting.",
		"inflight/leader-leaves":   hang + "Usual cause: the request's context is cancelled and takes the work, or only the storing of its result, with it.",
		"inflight/leaves-no-trap":  "Settle the key however the duplicates end. Usual cause: a duplicate's refusal leaves a state behind (a counter, a second lock) that nothing removes.",
	}
}

// keyRepairs returns the advice for each failed case of the group key, by its id.
func keyRepairs() map[string]string {
	const parse = "Decide whether keys are taken as they are or as structured-field strings, and do it in one function that is used everywhere. "
	return map[string]string{
		"key/missing": "Answer 400 with a problem document where a key is required, or execute where it is not, and say which in the documentation.",
		"key/missing-not-merged": "Pass requests without a key through, or refuse them, before anything is looked up. " +
			"Usual cause: the missing header becomes the text undefined, null or an empty string, which is then one key for everybody.",
		"key/empty-not-shared": "Treat an empty or blank header as a missing one, after trimming. Usual cause: only a missing header is looked for, and the empty string is a key like any other.",
		"key/case-sensitive":   "Compare keys byte for byte. Usual causes: a store whose collation ignores case (MySQL's default), or keys that are made lower case.",
		"key/hostile-names": "Use keys as data: bind them, and put them into a map that has no members of its own. " +
			"Usual causes: keys put into SQL, into file names or into a plain JavaScript object, or parts joined with a separator that a key may contain.",
		"key/first-character":       parse + "Usual cause: a parser of structured fields that reads a bare UUID as a token or as a number, depending on its first character.",
		"key/sf-string-accepted":    parse + "Accept the quotes of the draft, with or without taking them off. Usual cause: a check against a UUID pattern, or a length, that has no room for two quotes.",
		"key/quoted-equals-bare":    "Nothing has to change. Clients that switch from one spelling to the other need to know whether it is the same key.",
		"key/malformed-sf-rejected": parse + "A value that begins with a quote and is no string is answered with 400. Usual cause: quotes are trimmed wherever they stand.",
		"key/sf-parameters-ignored": parse + "What follows the closing quote after a semicolon is no part of the key. Usual cause: the whole header line is the key.",
		"key/two-lines":             "Answer 400 where the key's header came twice with different values. Usual causes: the first line is taken and the other dropped, or both are joined with a comma.",
		"key/255-accepted":          "Make room for the longest key that is documented, and refuse longer ones. Usual cause: a column that cuts (VARCHAR without strict mode).",
		"key/5000-rejected-4xx":     "Check the length before anything else, and answer 400. Usual causes: no bound at all, or a store that cuts the key without a word.",
		"key/invalid-is-4xx":        "Check the key against its published format first, and answer 400. Usual cause: the parser's exception reaches the general error handler.",
		"key/invalid-not-executed":  "Refuse a request whose key cannot be used, before the handler runs. Usual cause: a key that does not parse is dropped, and the request is executed without protection.",
		"key/non-ascii":             "Refuse keys with other characters than printable ASCII with 400. Usual cause: they are decoded to question marks, and different keys become one.",
	}
}

// outcomeRepairs returns the advice for each failed case of the group outcome, by its id.
func outcomeRepairs() map[string]string {
	const policy = "Decide which answers are stored, document it, and settle the key either way: keep the answer, or delete the record so that a repeat runs again. "
	const release = "Settle the key on every way out of the handler (a deferred function, finally), and give the record a lifetime a little longer than the work may take. "
	return map[string]string{
		"outcome/4xx": policy + "Usual causes: the key stays in progress after a refusal, or the stored refusal is replayed as 200.",
		"outcome/5xx": policy + "Where the effect may have happened before the error, keep the record: a repeat that runs again pays twice. " +
			"Usual causes: the key is released on every error, or the stored error is replayed as 200.",
		"outcome/5xx-resolves":         release + "Usual cause: only the path of success removes the lock.",
		"outcome/transient-not-pinned": "Do not store 408, 425, 429, 502, 503 and 504, unless the work had begun. Usual cause: everything below 500, or every answer at all, is stored.",
		"outcome/crash-resolves":       release + "Usual causes: an exception skips the clean-up, or the lock has no lifetime.",
		"outcome/crash-effect": "Decide what a repeat does after a crash: best, commit the effect and the record of the key in one transaction, so that there is no state between them; " +
			"else hold the key until somebody has looked. Usual cause: the record is released, though the effect had happened.",
		"outcome/corrected-body":            "Nothing has to change. Say in the documentation whether a corrected request needs a new key; most APIs ask for one.",
		"outcome/unauthorised-not-consumed": "Check the credentials before the key is looked up or taken. Usual cause: the idempotency layer stands outside the authentication, and stores its 401.",
		"outcome/store-outage":              "Refuse with 503 while the store cannot be asked, before the handler runs. Usual cause: an error of the store is logged, and the request is executed without protection.",
	}
}

// netRepairs returns the advice for each failed case of the group net, by its id.
func netRepairs() map[string]string {
	const hang = "Finish the work and store its result whether or not the caller is still there, and settle the key in a place that runs in every case. "
	return map[string]string{
		"net/abort-then-retry-resolves": hang + "Usual causes: the result is stored in an event of the answer ('finish') that does not come when the client has hung up, or the request's context cancels the store.",
		"net/once":                      hang + "Usual causes: the lock is removed when the connection closes, while the work goes on, or the work is cancelled after its effect and the key released.",
		"net/response-lost-then-retry":  "Store the result before the answer is sent. Usual cause: it is stored afterwards, or only when the answer got through.",
		"net/truncated-does-not-claim":  "Read the whole body, and check its length, before the key is taken. Usual cause: the key is taken when the header has been read, and an upload that breaks off leaves it in progress, or runs with half of a body.",
		"net/slow-upload-duplicate":     "Take the key after the body was read, in one atomic step. Usual cause: the lookup is made when the header arrives and the record written when the body is complete, so that two uploads pass it.",
		"net/reset-vs-fin":              hang + "Treat a reset and an orderly close alike. Usual cause: an exception that only one of the two raises.",
		"net/expect-continue":           "Hash the body, not the way in which it was announced. Usual cause: header fields such as Expect or Content-Length are a part of the hash.",
		"net/chunked-equals-length":     "Hash the body after it was read, without its framing. Usual cause: Content-Length or Transfer-Encoding is a part of the hash, or a chunked body is not read.",
		"net/keep-alive":                "Keep nothing about a key with the connection. Usual cause: state that is stored in an object of the connection, or of a worker process, instead of the shared store.",
	}
}

// lifeRepairs returns the advice for each failed case of the groups time, restart, soak and oasis, by its id.
func lifeRepairs() map[string]string {
	return map[string]string{
		"time/not-before":                  "Give a record its whole window, counted from the first request, and do not let the store evict it. Usual causes: the lock's short lifetime stays on the finished record, or an eviction policy.",
		"time/expires":                     "Give records a lifetime and say how long it is. After it, execute anew or refuse with a clear status. Usual cause: no lifetime at all, or one that is renewed by each repeat.",
		"restart/replay-survives":          "Keep records in a store that outlives the process and is written before the answer is sent. Usual cause: a map in memory, or writes that are flushed later.",
		"restart/inflight-killed-resolves": "Give a record that is in progress a lifetime, or an owner that is known to be dead, and take it over or fail it then. Usual cause: a row in state processing that nothing ever changes again.",
		"restart/no-double-after-kill": "Commit the effect and the record of the key in one transaction; where the effect is in another system, give that system a key of its own, derived from this one. " +
			"Usual cause: after a crash the lock runs out, and a retry repeats what had happened.",
		"soak/linearizable":         "Make each step on a key atomic in the store: take it if it is absent, settle it if it is mine. Usual cause: read, decide and write as three steps; the history in the report shows which of them met.",
		"oasis/repeatable-requests": "Answer Repeatability-Result: accepted to what was executed or replayed and rejected to what was not, and refuse a Repeatability-First-Sent outside the window with 412.",
	}
}
