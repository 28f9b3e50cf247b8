// Package conformance tells whether a server honours idempotency keys. It drives
// any server, in any language, over HTTP only, and reports case by case.
//
//	rep, err := conformance.Run(ctx, conformance.Options{
//		URL:     "http://127.0.0.1:8080/payments",
//		Body:    `{"reference":"{ref}","amount":100}`,
//		Witness: "http://127.0.0.1:8080/effects?ref={ref}#/count",
//	})
//
// [RunHandler] does the same to a middleware in this process: the suite supplies
// the handler behind it, so that effects are counted exactly and nothing sleeps.
// [RunOrigin] does it to a gateway, with the suite as the origin behind it.
// Package conformancetest makes subtests of them.
//
// Options.Explore searches in place of the cases: see [Relations].
//
// # Verdicts
//
// Each case is a rule with a level (how much it weighs) and a source. A missed
// rule is a failure; a missed Should is a warning; what a profile declares is
// compared with, and not failed. What cannot be tested against this target is
// skipped, with the reason, and a set-up that did not come about, or an overlap
// that could not be proved, is inconclusive: neither ever counts as a pass.
//
// Concurrency is judged by the recorded history of calls and answers, checked
// for linearizability against the model "one effect per key; each answer is the
// outcome, or in-progress while it may be running".
//
// # Evidence
//
// A run begins with a few plain operations. If the first is refused, other ways to send it
// are tried that servers use (see Options.NoProbe); Report.WayIn names the one that is
// taken, and Report.Learned what the whole run has shown of the server. The plain operations show whether ids or Locations
// tell effects apart, whether the witness counts nothing for a reference that was
// never used and something for one that was, and whether a delay makes an
// operation slow. What does not hold is not built upon: the cases that need it
// are inconclusive, and Report.Headline says so. A count is final only after
// Options.EffectWait, for which cases wait beside each other. Level, impact and fix of
// a failure follow from what was seen, and not from the case that saw it: an effect too
// many, or a success without one, is a matter of safety in every case; a key that does
// not resolve is one of liveness. Without a witness an effect is seen only if an answer
// names it, and the report says so in place of a number.
//
// Cases on which others depend run first and one at a time; the
// others are skipped only if it fails each time. Each failure is tried again by itself. What
// fails only beside other cases, and is proved by no effect and no answer, is
// inconclusive, and says so.
//
// Report.ExitStatus is 4 where nothing failed, but a safety case was not decided.
//
// # What a pass means
//
// Within the cases run, with the witness named, no violation was seen. It does
// not prove exactly-once, nor how several nodes behave, nor what happens after
// expiry or a restart unless those groups ran; a clean burst is so many rounds
// without a find, and no proof.
//
// # Limits
//
// Every case sends real requests that have real effects: only loopback is
// contacted unless Options.AllowHosts names more. The package writes HTTP/1.1
// itself, byte by byte, because net/http sends a request that carries a key
// again on its own; HTTP/2 and HTTP/3 are not spoken.
//
// Methods of a nil *Case, *Report or *UsageError panic.
package conformance
