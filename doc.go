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
// conformance tells whether yours honours them), anything after the journal
// itself is lost, defence against a captured request that is played again (sign
// each attempt in Config.Authorize, see package sign), or mutual exclusion across machines.
//
// An answer without Content-Length over HTTP/1, neither chunked nor compressed,
// ends where the connection ends, and a connection that broke can look like one
// that was closed. JSON that breaks off is recognised and asked for again; the
// same bytes a second time are taken for the whole answer. Other text that was
// cut in this way cannot be recognised.
//
// # Requests without a key
//
// A generated key protects the one call that it was made for, and its Resume. Two
// calls of Do without a key are two operations, as they are for a server. There is
// one exception, for loops around Do: a request without a key is refused with
// [ErrOutcomeUnknown] while the same request (account, origin, method, target,
// headers that count, body) exists under a generated key and is unresolved, or was
// ended by Resume or Run and no caller with its key was told how. The error names
// that key: DoKey with it goes on, or gives the recorded answer. This holds across
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
// Every error of [Client.Do] is a [*Error] and matches exactly one of
// [ErrNoEffect] and [ErrOutcomeUnknown]. The outcome is what is known of the
// operation ([Outcome]), the state is that of its record ([persist.State]).
//
//	outcome    what proves it                                state               error matches                         what to do next
//	Unknown    all else: timeout, cut body, 408, 5xx         pending             ErrOutcomeUnknown                     the same key again, or leave it to Resume or Run
//	           a stored 5xx; a redirect                      held                ErrStoredError or ErrRedirected, too  find out, then Settle
//	           a business reference that was used before     held                ErrDuplicate, too                     find out by whom, then Settle
//	           an answer that no source explains; no key     held                nothing else                          find out, then Settle
//	NotSent    no connection was had, in any process life    forgotten           ErrNoEffect, ErrNotSent               go on as if it had never been tried
//	                                                         pending (enqueued)  ErrOutcomeUnknown, ErrNotSent         nothing: Resume or Run sends it
//	Refused    421, 425, 429 (waits, again); 401, 403, 407   as NotSent          ErrNoEffect, ErrRefused               as NotSent
//	InFlight   the server works on an earlier attempt        pending             ErrOutcomeUnknown, ErrInFlight        the same key again, later
//	Confirmed  2xx; 303 to its origin; a final 4xx           confirmed           none: a response                      after a final 4xx: Key.Generation, if it is to be tried anew
//	Mismatch   the key belongs to another request            mismatched          ErrNoEffect, ErrKeyReused             mend the code that makes the keys
//	           the same, after an unknown outcome            held                ErrOutcomeUnknown, ErrKeyReused       find out, then Settle
//	Expired    the server may have forgotten the key         held                ErrOutcomeUnknown, ErrKeyExpired      find out, then Settle
//
// All that are held match [ErrHeld], too. After Settle the error matches
// [ErrSettled], with ErrNoEffect where nothing happened; after Abandon
// [ErrAbandoned]. Config.Reconcile finds out and settles by itself.
package oncehttp
