// Package conformance judges servers by their use of idempotency keys. It drives any server, in
// any language, over HTTP only, and reports case by case.
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
// Each case is a rule with a level (its weight) and a source. A missed rule is a failure; a
// missed Should is a warning. Cases without a common rule compare the server with its profile,
// or only record the answers. A case that needs an ability that the target lacks is skipped,
// with the reason. A failed set-up, or an overlap without proof, is inconclusive. Neither counts
// as a pass.
//
// Concurrency is judged by the recorded history of calls and answers, checked
// for linearizability against the model "one effect per key; each answer is the
// outcome, or in-progress while it may be running".
//
// # Evidence
//
// A run begins with a few plain operations. If the first is refused, other ways of sending are
// tried (see Options.NoProbe); Report.WayIn holds the successful one, and Report.Learned the
// observations of the whole run. The plain operations test the evidence: ids or Locations tell
// effects apart; the witness counts nothing for a new reference, and something for a used one;
// a delay makes an operation slow. If one of these does not hold, the cases that need it are
// inconclusive, and Report.Headline says so. A count is final only after Options.EffectWait; the
// cases wait for it beside each other.
//
// Level, impact and fix of a failure follow from the fault, and not from the case: an effect too
// many, or a success without one, is a matter of safety in every case; a key that does not
// resolve is one of liveness. Without a witness only effects named in answers are seen, and the
// report says so in place of a number.
//
// Cases on which others depend run first, one at a time. The others are skipped if such a case
// fails each time. Each failure is tried again by itself. A failure that comes only beside other
// cases, without an effect or an answer as proof, is inconclusive.
//
// Report.ExitStatus is 4 if nothing failed, but a safety case was not decided.
//
// # What a pass means
//
// Within the cases run, with the witness named, no violation was seen. A pass does not prove
// exactly-once. It says nothing about several nodes, nor about expiry or a restart unless those
// groups ran. A clean burst is a number of rounds without a finding, and no proof.
//
// # Limits
//
// Every case sends real requests with real effects: only loopback is contacted unless
// Options.AllowHosts names more. The package writes HTTP/1.1 itself, byte by byte, because
// net/http repeats a request with a key on its own. There is no HTTP/2 and no HTTP/3.
//
// Methods of a nil *Case, *Report or *UsageError panic.
package conformance
