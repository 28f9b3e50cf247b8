// Package oncehttp sends an HTTP request that must not take effect twice: at most
// once for each key that the API still knows. It keeps the idempotency key and the
// request on disk until the server has confirmed the effect, and says so if the
// outcome is not known.
//
// A key names an operation. An attempt is one try to send it. The outcome is the
// knowledge about it, the effect its result at the server. A record is one operation
// in a journal. A profile describes the idempotency of one API, with its window: the time
// for which the API knows a key. A pending operation is sent again by the next call with
// its key, by Resume or by Run. A held one is sent by nobody until it is settled by a person,
// Config.Reconcile or an event of the API, with its effect. (One held for a caller of
// Transport goes on with a call under its key.) "Retry" is only a verb.
//
//	client, err := oncehttp.Open("payments.db", oncehttp.Config{Profile: profile.StripeV1()})
//	if err != nil { ... }
//	defer client.Close()
//	go client.Run(ctx) // finishes the operations of an earlier process
//	                   // (set Config.Logger or Config.Observe to hear of them)
//
//	orders := oncehttp.NewScope("order")
//	resp, err := client.DoKey(req, orders.Key("uid123", "order456"))
//	switch {
//	case err == nil:                              // the server's final answer, which may be a refusal: ResultOf(resp).Outcome
//	case errors.Is(err, oncehttp.ErrNoEffect):    // nothing happened, nothing is pending
//	case errors.Is(err, oncehttp.ErrFinal):       // decided before: Error.Effect says how
//	default:                                      // unknown: the same key goes on
//	}
//
// # Promises
//
//   - Journal before wire: key, fingerprint and request are on disk before the
//     first byte leaves the process. A journal that cannot be written stops the send.
//   - One key per operation: every attempt, in this process and after any crash,
//     carries the same key and the same bytes, until the operation ends. One without
//     effect is forgotten, and its key is free again.
//   - No answer is lost: an answer is classified before the context is checked,
//     and a cut answer is asked for again, within the bounds of Policy. A body over
//     Config.MaxResponseBytes streams: a cut is then its reader's error.
//   - No "no effect" without proof. Unknown is an outcome of its own.
//   - No send of a key after the retention window of its profile. That of the default
//     profile, 24 h, is an assumption.
//   - Attempts, waits and memory are bounded by fields of [Config] and [Policy]. The
//     journal grows until it is pruned.
//
// # Limits
//
// Not promised are:
//
//   - one effect at a server that ignores keys (package conformance tests a server). If
//     the profile's API honours keys on other methods only, a request is sent once, and
//     held in doubt. The methods of the default profile are no limit: Config.Logger gets
//     a method outside them once;
//   - anything after the loss of the journal;
//   - defence against the replay of a captured request (sign each attempt in
//     Config.Authorize, see package sign);
//   - mutual exclusion across machines.
//
// Over HTTP/1 an answer without Content-Length, neither chunked nor compressed, ends with
// its connection, and a broken connection can look like a closed one. JSON that breaks off
// is recognised, and asked for again. Other text cut in this way is not recognised.
//
// # Answers that are not the API's
//
// A proxy, a gateway or a maintenance page may answer in place of the API, and knows
// nothing of the operation. An answer counts only if it can be the API's:
//
//   - A 2xx with an HTML document, by its first bytes, proves nothing. It counts if the
//     request's Accept names text/html, application/xhtml+xml or text/*, or the profile
//     says that the API answers so ([profile.Own]). A 2xx with incomplete JSON proves
//     nothing either. If the profile names an API, and its key protects the request, the
//     answer is asked for again, and the operation is held (unclear) after the same answer
//     a second time. Under the default profile a document is held at once. Incomplete JSON is
//     asked for again only if the connection may have cut it: without a Content-Length, neither
//     chunked nor compressed. With one of these it is held at once. Without a protecting key
//     each is held at once. Empty answers, text and other types count. In an answer too large
//     to keep only the beginning is checked.
//   - A 4xx with an HTML document, or empty, and final by its status alone, refuses this
//     send: nothing happened, and the call makes no further attempt. An enqueued operation
//     is tried again, at least every [Policy].MaxPause, until Config.EnqueueMaxAge is over.
//     In doubt such an answer settles nothing, with any marks. A profile may list the
//     statuses that its API itself answers so.
//
// A compressed answer (gzip, deflate) is read as its text, up to Config.MaxResponseBytes.
// The caller and the journal get it as it came, with its Content-Encoding, as net/http does
// for a request with Accept-Encoding. Other codings cannot be read. If the text would
// decide, the outcome is unknown; the Content-Type then tells an HTML document.
//
// # Requests without a key
//
// A generated key protects the one call that it was made for, and its Resume. Two calls of
// Do without a key are two operations, as they are for a server.
//
// There is one exception, for loops around Do. A request without a key is refused with
// [ErrOutcomeUnknown] while the same request (account, origin, method, target, headers that
// count, body) has a generated key and is unresolved, or was ended by Resume or Run without
// a caller being told. A call under way in this process is not unresolved: two goroutines
// that send the same request at the same time make two operations. The error names the
// generated key: DoKey with it goes on, or returns the
// recorded answer. While another process sends the operation, the error matches
// [ErrInFlight] and names no key. A key named by an error is kept as a caller's own
// (Config.KeepKey), also after the loss of the answer. The refusal holds across restarts, and
// for the server's retention window. So a loop does not repeat an operation within one
// process life, nor after an operation was left unresolved or ended by a pass.
//
// Through [Client.Transport] and [Client.StandardClient] a request without a key is an
// operation only if it is declared one, for example by Operation: [Writes]. All else is
// net/http, and is not protected.
//
// A caller with a new key for each call is not protected. Some SDKs do so: stripe-go without
// SetIdempotencyKey makes two calls two payments. Give them a key of the business.
//
// # Outcomes, states and errors
//
// Every error about one operation is a [*Error] and matches exactly one verdict, in every method of [Client]:
//
//	ErrNoEffect        what the key names did not happen, and nothing is pending
//	ErrFinal           it was decided before, and this call cannot have its answer; Error.Effect says what was decided
//	ErrOutcomeUnknown  an effect is possible, or is intended and pending
//
// Another key, such as the next [Key.Generation], is right only after [EffectAbsent] or [EffectRefused] in
// [Error.Effect]. The outcome is the knowledge about the operation ([Outcome]), the state its record's
// ([persist.State]).
//
//	outcome    what proves it                                state               error matches                         what to do next
//	Unknown    all else: timeout, cut body, 408, 499, 5xx    pending             ErrOutcomeUnknown                     the same key again, or leave it to Resume or Run
//	           a stored 5xx; a redirect not followed         held                ErrStoredError or ErrRedirected, too  find out, then Settle
//	           a business reference that was used before     held                ErrDuplicate, too                     find out by whom, then Settle
//	           an answer that no source explains, or that    held                nothing else                          find out, then Settle
//	           may not be the API's; no key that protects
//	NotSent    no connection was had, in any process life    forgotten           ErrNoEffect, ErrNotSent               go on as if it had never been tried
//	                                                         pending (enqueued)  ErrOutcomeUnknown, ErrNotSent         nothing: Resume or Run sends it
//	Refused    421, 425, 429 (waits, again); 401, 403, 407;  as NotSent          ErrNoEffect, ErrRefused               as NotSent
//	           a bare 4xx
//	           a final 4xx                                   confirmed           none: a response                      Key.Generation, if it is to be tried anew
//	InFlight   the server works on an earlier attempt        pending             ErrOutcomeUnknown, ErrInFlight        the same key again, later
//	Confirmed  2xx; 303 to its origin (1); done already      confirmed           none: a response                      nothing
//	Accepted   202: taken on, and may still fail             confirmed           none: a response                      ask the API what became of it
//	Mismatch   the key belongs to another request            mismatched          ErrFinal, ErrKeyReused                mend the code that makes the keys
//	           the same, after an unknown outcome            held                ErrOutcomeUnknown, ErrKeyReused       find out, then Settle
//	Expired    the server may have forgotten the key         held                ErrOutcomeUnknown, ErrKeyExpired      find out, then Settle
//
// (1) Through Transport, or if the profile says that the API answers so (profile.Own.SeeOther). Any other 303 of a Do is a
// redirect not followed.
//
// All that are held match [ErrHeld], too. Config.Reconcile finds out and settles by itself.
//
// The record decides the result of a later call with its key:
//
//	record                                  the same request                           another request, beside ErrKeyReused
//	pending, or held for a caller           goes on                                    ErrOutcomeUnknown
//	of Transport (persist.HoldCaller)
//	held otherwise                          ErrOutcomeUnknown, ErrHeld; of Enqueue:    ErrOutcomeUnknown
//	                                        goes on if it was never sent in time
//	confirmed                               its answer; of Enqueue: nil                ErrFinal, EffectHappened
//	confirmed by a final 4xx                its answer; of Enqueue: ErrFinal           ErrFinal, EffectRefused: take the next Generation
//	confirmed, its answer is not kept       ErrFinal, ErrAnswerGone (*); of Enqueue    ErrFinal
//	                                        nil after a success, ErrFinal after a 4xx
//	mismatched                              ErrFinal, ErrKeyReused                     ErrFinal
//	settled as happened, with an answer     its answer; of Enqueue: nil                ErrFinal, EffectHappened
//	settled as happened, without an answer  ErrFinal, ErrSettled, ErrAnswerGone;       ErrFinal, EffectHappened
//	                                        of Enqueue: nil
//	settled as absent                       ErrNoEffect, ErrSettled                    ErrFinal, EffectAbsent
//	abandoned                               ErrOutcomeUnknown, ErrAbandoned            ErrOutcomeUnknown, ErrAbandoned
//	begun anew by Rekey or Redrive (**)     ErrKeyReused, with ErrOutcomeUnknown, or   as its own end
//	                                        ErrFinal once the new operation happened
//
// (*) A 2xx over Config.MaxResponseBytes or MaxResponseHeaderBytes is asked for again, under its key and inside the window,
// unless Policy.NeverAskAgain is set.
//
// (**) Error.Key is the key of the new operation: go on with that one. Once the new operation was refused, or is settled as absent,
// the call has the answer or the error of the old record.
//
// [Client.Lookup], [Client.Settle], [Client.Abandon], [Client.Rekey] and [Client.Redrive] take the key of an operation. Without a record the
// error is ErrOutcomeUnknown. An ended operation has the verdict of the same request, or ErrFinal if that would get an
// answer.
package oncehttp
