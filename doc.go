// Package oncehttp sends an HTTP request that must take effect exactly once, and
// keeps its idempotency key and its bytes on disk until the server has confirmed
// what happened.
//
// An operation is what a key names; an attempt is one try to send it; the
// outcome is what is known of it; a record is one operation in a journal; an
// effect is what the server did; a profile is how one API spells idempotency.
// "Retry" is only a verb.
//
//	client, err := oncehttp.Open("payments.db", oncehttp.Config{Profile: profile.StripeV1()})
//	if err != nil { ... }
//	defer client.Close()
//	go client.Run(ctx) // finishes what an earlier process began
//	                   // (Config.Logger or Config.Observe makes it heard)
//
//	orders := oncehttp.NewScope("order")
//	resp, err := client.DoKey(req, orders.Key("uid123", "order456"))
//	switch {
//	case err == nil:                              // the server's final answer, whole
//	case errors.Is(err, oncehttp.ErrNoEffect):    // nothing happened, nothing is pending
//	case errors.Is(err, oncehttp.ErrFinal):       // decided before: Error.Effect says how
//	default:                                      // unknown: the same key goes on
//	}
//
// # Promises
//
//   - Journal before wire: key, fingerprint and request are on disk before the
//     first byte leaves the process. A journal that cannot be written stops the send.
//   - One key per operation, for ever: every attempt, in this process and after
//     any crash, carries the same key and the same bytes.
//   - No answer is lost: an answer is classified before the context is looked
//     at, and one that was cut off is asked for again until it is whole.
//   - It never says "no effect" without proof. Unknown is an outcome of its own.
//   - It never sends a key again that the server may have forgotten.
//   - Everything is bounded; each bound is a field of [Config] or [Policy].
//
// # Limits
//
// It does not promise exactly-once against a server that ignores keys (package
// conformance tells whether yours honours them). Where the profile names an API that
// honours keys on other methods only, a request is sent once, and held where that
// leaves a doubt; the methods of the default profile bind nobody, and a method that
// it does not list is told to Config.Logger once. Nor does it promise anything after the journal
// itself is lost, defence against a captured request that is played again (sign
// each attempt in Config.Authorize, see package sign), or mutual exclusion across machines.
//
// An answer without Content-Length over HTTP/1, neither chunked nor compressed,
// ends where the connection ends, and a connection that broke can look like one
// that was closed. JSON that breaks off is recognised and asked for again. Other
// text that was cut in this way cannot be recognised.
//
// # Answers that are not the API's
//
// A proxy, a gateway or a maintenance page in front of the API answers, too, and
// knows nothing of the operation. An answer counts only if it can be the API's:
//
//   - A 2xx that is an HTML document, by its first bytes, proves nothing, unless
//     the request's Accept names text/html, application/xhtml+xml or text/*, or the
//     profile says that the API answers so ([profile.Own]). Nor does one whose JSON
//     ends early. Where the profile names an API whose key protects the request, it
//     is asked for again, and held (unclear) when the same answer comes a second
//     time. Under the default profile a document is held at once, and JSON that
//     ends early is asked for again; where no key protects, each is held at once.
//     Empty answers, text and other types count. Of an answer that is too large to
//     keep only the beginning is looked at.
//   - A 4xx that is an HTML document or empty, and that would be final by its status
//     alone, refuses this send: nothing happened, and the call makes no further
//     attempt. An enqueued operation is tried again, at least every
//     [Policy].MaxPause, until Config.EnqueueMaxAge is over. In doubt it settles
//     nothing, whatever marks it has. A profile may name the statuses that its API
//     gives so itself.
//
// A compressed answer (gzip, deflate) is read as the text that it holds, up to
// Config.MaxResponseBytes of it. The caller gets it, and the journal keeps it, as it
// came, with its Content-Encoding, as net/http gives it to who sets Accept-Encoding.
// Another coding cannot be read; where its text would decide, the outcome is unknown,
// and its Content-Type says whether it is an HTML document.
//
// # Requests without a key
//
// A generated key protects the one call that it was made for, and its Resume. Two
// calls of Do without a key are two operations, as they are for a server. There is
// one exception, for loops around Do: a request without a key is refused with
// [ErrOutcomeUnknown] while the same request (account, origin, method, target,
// headers that count, body) exists under a generated key and is unresolved, or was
// ended by Resume or Run and no caller with its key was told how. The error names
// that key: DoKey with it goes on, or gives the recorded answer. While another process
// is sending it, the error matches [ErrInFlight] and names no key. A key that an error
// may have named is kept as if the caller had chosen it (Config.KeepKey), also once
// the answer is gone. The refusal holds across
// restarts, and for the server's retention window. So such a loop does not make an
// operation twice within one process life, nor where an operation was left
// unresolved or a pass ended it.
//
// It does not protect a caller that makes a fresh key for each call. Some SDKs do:
// stripe-go without SetIdempotencyKey makes a new key for each call, so that two
// calls are two payments. Give them a key of the business.
//
// # Outcomes, states and errors
//
// Every error about one operation is a [*Error] and matches exactly one verdict, in every method of [Client]:
//
//	ErrNoEffect        what the key names did not happen, and nothing is pending
//	ErrFinal           it was decided before, and this call cannot have its answer; Error.Effect says what was decided
//	ErrOutcomeUnknown  an effect is possible, or is intended and pending
//
// Another key, such as the next [Key.Generation], is right only where [Error.Effect] is [EffectAbsent] or
// [EffectRefused]. The outcome is what is known of the operation ([Outcome]), the state is that of its record
// ([persist.State]).
//
//	outcome    what proves it                                state               error matches                         what to do next
//	Unknown    all else: timeout, cut body, 408, 5xx         pending             ErrOutcomeUnknown                     the same key again, or leave it to Resume or Run
//	           a stored 5xx; a redirect                      held                ErrStoredError or ErrRedirected, too  find out, then Settle
//	           a business reference that was used before     held                ErrDuplicate, too                     find out by whom, then Settle
//	           an answer that no source explains, or that    held                nothing else                          find out, then Settle
//	           may not be the API's; no key that protects
//	NotSent    no connection was had, in any process life    forgotten           ErrNoEffect, ErrNotSent               go on as if it had never been tried
//	                                                         pending (enqueued)  ErrOutcomeUnknown, ErrNotSent         nothing: Resume or Run sends it
//	Refused    421, 425, 429 (waits, again); 401, 403, 407;  as NotSent          ErrNoEffect, ErrRefused               as NotSent
//	           a bare 4xx
//	           a final 4xx                                   confirmed           none: a response                      Key.Generation, if it is to be tried anew
//	InFlight   the server works on an earlier attempt        pending             ErrOutcomeUnknown, ErrInFlight        the same key again, later
//	Confirmed  2xx; 303 to its origin; done already          confirmed           none: a response                      nothing
//	Accepted   202: taken on, and may still fail             confirmed           none: a response                      ask the API what became of it
//	Mismatch   the key belongs to another request            mismatched          ErrFinal, ErrKeyReused                mend the code that makes the keys
//	           the same, after an unknown outcome            held                ErrOutcomeUnknown, ErrKeyReused       find out, then Settle
//	Expired    the server may have forgotten the key         held                ErrOutcomeUnknown, ErrKeyExpired      find out, then Settle
//
// All that are held match [ErrHeld], too. Config.Reconcile finds out and settles by itself.
//
// A record that stands decides what a call with its key is told:
//
//	record                                  the same request                           another request, beside ErrKeyReused
//	pending, held                           goes on; held: ErrOutcomeUnknown, ErrHeld  ErrOutcomeUnknown
//	confirmed                               its answer; of Enqueue: nil                ErrFinal, EffectHappened
//	confirmed by a final 4xx                its answer; of Enqueue: ErrFinal           ErrFinal, EffectRefused: take the next Generation
//	confirmed, its answer is not kept       ErrFinal, ErrAnswerGone                    ErrFinal
//	mismatched                              ErrFinal, ErrKeyReused                     ErrFinal
//	settled as happened, without an answer  ErrFinal, ErrSettled, ErrAnswerGone        ErrFinal, EffectHappened
//	settled as absent                       ErrNoEffect, ErrSettled                    ErrFinal, EffectAbsent
//	abandoned                               ErrOutcomeUnknown, ErrAbandoned            ErrOutcomeUnknown, ErrAbandoned
//
// [Client.Lookup], [Client.Settle], [Client.Abandon] and [Client.Rekey] name an operation by its key: one that is not
// found is ErrOutcomeUnknown, and one that has ended has the verdict of the same request, ErrFinal where that would get
// an answer.
package oncehttp
