package conformance_test

import (
	"maps"
	"time"

	"github.com/oncehttp/oncehttp/conformance"
)

// sight is what the suite says of a bug of the mock, in the spelling of broken.
type sight struct {
	counted, inferred string // with a witness, and without
	owned             string // around a handler of the suite's own, where only that shows it
	why               string // nothing is seen over HTTP
	window            time.Duration
	change            func(o *conformance.Options, url string)
}

// both is seen with a witness and without one.
func both(verdicts string) sight { return sight{counted: verdicts, inferred: verdicts} }

// hiddenBug is why a bug is not seen without a witness.
const hiddenBug = "the answers are those of a correct server"

// shortWindow is a window that can be waited for, and longer than a case takes.
const shortWindow = 4 * time.Second

// restarts lets the suite kill the mock and start it again.
func restarts(o *conformance.Options, url string) { o.Restart = hook(url + "/_restart") }

func oneByOne(o *conformance.Options, _ string) { o.Parallel = 1 }

// longer waits for effects that are so late.
func longer(wait time.Duration) func(*conformance.Options, string) {
	return func(o *conformance.Options, _ string) { o.EffectWait = wait }
}

// hasty leaves out what may take as long as a key is known here.
func hasty(o *conformance.Options, _ string) {
	o.Skip = []string{"soak/**", "inflight/long-work", "replay/after-100-requests", "inflight/burst", "inflight/around-completion"}
}

// withoutHundred leaves out the one case that may take a short window's time.
func withoutHundred(o *conformance.Options, _ string) { o.Skip = []string{"replay/after-100-requests"} }

// sights are the rows of all bugs, by name.
func sights() map[string]sight {
	all := map[string]sight{}
	for _, part := range []map[string]sight{keySights(), memorySights(), scopeSights(), flightSights(), answerSights()} {
		maps.Copy(all, part)
	}
	return all
}

// keySights: keys are read wrongly, or not looked at.
func keySights() map[string]sight {
	return map[string]sight{
		"keys-ignored":         both("replay/answered replay/effects-once"),
		"other-header-name":    both("replay/answered replay/effects-once"),
		"two-lines-first-wins": both("?key/two-lines"),
		"empty-key-shared":     both("key/empty-not-shared"),
		"keyless-merged":       both("key/missing-not-merged"),
		"key-truncated":        both("key/255-accepted"),
		"key-folded":           both("key/case-sensitive"),
		"key-trimmed":          both("key/hostile-names"),
		"key-normalised":       both("key/hostile-names"),
		// The quoted empty key and the unterminated one begin with a quote too.
		"quoted-key-500":            {counted: "key/sf-string-accepted key/invalid-is-4xx ?key/empty-not-shared ?key/malformed-sf-rejected", inferred: "key/sf-string-accepted key/invalid-is-4xx ?key/empty-not-shared ?key/malformed-sf-rejected ~key/invalid-not-executed"},
		"malformed-quotes-accepted": both("?key/malformed-sf-rejected"),
		"parameters-in-key":         both("key/sf-parameters-ignored"),
		// Each of these sends keys outside the bounds.
		"invalid-key-500":         {counted: "key/invalid-is-4xx key/two-lines key/5000-rejected-4xx ?key/empty-not-shared ?key/non-ascii ?key/malformed-sf-rejected", inferred: "key/invalid-is-4xx key/two-lines key/5000-rejected-4xx ?key/empty-not-shared ?key/non-ascii ?key/malformed-sf-rejected ~key/invalid-not-executed"},
		"invalid-key-executed":    both("key/invalid-not-executed key/two-lines key/5000-rejected-4xx key/malformed-sf-rejected"),
		"long-key-accepted":       both("?key/5000-rejected-4xx"),
		"key-prefix-dropped":      both("key/hostile-names"),
		"key-as-number":           both("key/digits"),
		"key-url-decoded":         both("key/hostile-names"),
		"comma-cuts-key":          both("key/hostile-names"),
		"two-lines-joined":        both("?key/two-lines"),
		"non-ascii-dropped":       both("?key/non-ascii"),
		"other-key-ignored":       both("key/255-accepted key/hostile-names key/invalid-not-executed key/short-protected"),
		"short-key-ignored":       both("key/short-protected"),
		"patch-unprotected":       {owned: "replay/other-method", why: "the mock serves PATCH on what was made, and not where operations are sent; around a handler that takes it: replay/other-method"},
		"other-route-unprotected": both("replay/second-path"),
		"action-unprotected":      {owned: "replay/without-body", why: "an action on what was made holds no reference, so that nobody counts its effects; around a handler of the suite: replay/without-body"},
		"form-unprotected":        both("replay/other-content-type"),
		"empty-body-unprotected":  {owned: "replay/without-body", why: "a request without a body holds no reference, so that nobody counts its effects; around a handler of the suite: replay/without-body"},
		"large-body-unprotected":  both("replay/large-body conflict/late-difference"),
		"authorised-unprotected":  both("replay/answered replay/effects-once"),
		"chunked-unprotected":     both("net/chunked-equals-length"),
	}
}

// memorySights: keys are forgotten, or known to one server of two.
func memorySights() map[string]sight {
	return map[string]sight{
		// Else the other cases push one another's keys out.
		"store-too-small": {counted: "replay/after-100-requests", inferred: "replay/after-100-requests", change: oneByOne},
		// Keys are forgotten after a second.
		"expires-early":           {counted: "time/not-before replay/after-a-pause", inferred: "time/not-before replay/after-a-pause", window: 10 * time.Second, change: hasty},
		"never-expires":           {counted: "time/expires", inferred: "time/expires", window: shortWindow, change: withoutHundred},
		"window-slides":           {why: "that a repeat lets the window begin anew is a choice: a key is then known for longer than was said, and for no shorter", window: shortWindow, change: withoutHundred},
		"expired-refused":         {why: "time/expires shows it and judges nothing: whether a key may be used again after its window is the server's choice", window: shortWindow, change: withoutHundred},
		"replayed-once":           both("replay/effects-once"),
		"large-answer-not-stored": {owned: "replay/large-answer", why: "the mock's own answers are short; around a handler of the suite: replay/large-answer"},
		"truncated-forgets":       both("net/truncated-repeat"),
		"stored-late":             both("replay/answered replay/effects-once"),
		// Which instance is asked goes by turns, so that a repeat meets the other one.
		"two-instances":        both("replay/answered replay/effects-once"),
		"replica-lag":          both("replay/answered replay/effects-once"),
		"restart-forgets":      {counted: "restart/replay-survives", inferred: "restart/replay-survives", change: restarts},
		"restart-leaves-locks": {counted: "restart/inflight-killed-resolves", inferred: "restart/inflight-killed-resolves", change: restarts},
		"restart-runs-again":   {counted: "restart/no-double-after-kill", why: hiddenBug, change: restarts},
	}
}

// scopeSights: requests are mistaken for one another.
func scopeSights() map[string]sight {
	return map[string]sight{
		"mismatch-silent":             both("conflict/not-silent"),
		"mismatch-executed":           both("conflict/not-executed"),
		"mismatch-in-flight-executed": both("inflight/other-body"),
		"mismatch-replaces":           both("conflict/original-survives"),
		"mismatch-500":                {counted: "conflict/rejected-status", inferred: "conflict/rejected-status ~conflict/not-executed ~inflight/other-body"},
		"mismatch-as-in-progress":     both("?conflict/rejected-status outcome/corrected-body"),
		"mismatch-swallowed":          {counted: "conflict/not-silent outcome/corrected-body scope/other-method scope/other-path-not-answered", inferred: "conflict/not-silent ~scope/other-method ~scope/other-path-not-answered"},
		"mismatch-bare":               both("?conflict/error-shape"),
		"mismatch-leaks":              both("conflict/no-leak"),
		"other-path-answered":         both("scope/other-path-not-answered"),
		"other-method-answered":       both("scope/other-method"),
		"other-query-answered":        {why: "scope/other-query shows it and judges nothing"},
		"other-principal-answered":    both("scope/other-principal-not-answered"),
		"principal-scheme-only":       both("scope/other-principal-not-answered"),
		"other-principal-refused":     {why: "to refuse a stranger is right; that the key is not the stranger's own is a choice"},
		"connection-scoped":           both("replay/answered replay/effects-once"),
		"chunked-differs":             both("net/chunked-equals-length"),
		"fresh-key-refused":           both("scope/fresh-key-executes"),
		"get-claims-key":              both("scope/head-options"),
		"get-answered":                both("scope/safe-method-not-answered"),
		"body-length-only":            both("conflict/not-silent"),
		"body-prefix-only":            both("?conflict/late-difference"),
		"content-type-ignored":        {why: "the fingerprint may be of the body alone, as the draft has it: another type of the same bytes is no other request"},
		"volatile-header-compared":    both("replay/other-headers"),
		"route-compared":              both("scope/other-resource-empty-body"),
		"nested-ignored":              both("?conflict/nested-differs"),
		"arrays-ignored":              both("?conflict/nested-differs"),
		"known-members-only":          both("?conflict/nested-differs ?conflict/large-numbers ?conflict/late-difference ?conflict/string-case"),
		"numbers-rounded":             both("?conflict/large-numbers"),
		"strings-folded":              both("?conflict/string-case"),
	}
}

// flightSights: duplicates meet the first request at work.
func flightSights() map[string]sight {
	return map[string]sight{
		"no-exclusion":          both("inflight/once"),
		"burst-race":            both("inflight/burst"),
		"in-flight-stored":      both("inflight/converges"),
		"stuck-after-duplicate": both("inflight/leaves-no-trap"),
		"in-flight-500":         both("inflight/status-or-wait"),
		"in-flight-200":         both("inflight/status-or-wait inflight/converges"),
		"in-flight-mismatch":    both("?inflight/status-or-wait net/abort-then-retry-resolves"),
		"in-flight-hangs":       both("inflight/status-or-wait"),
		"retry-after-absurd":    both("?inflight/retry-after-sane"),
		"retry-after-garbage":   both("?inflight/retry-after-present"),
		"retry-after-missing":   both("?inflight/retry-after-present"),
		"waits-then-executes":   both("inflight/once"),
		"waiter-empty":          both("?inflight/status-or-wait inflight/refusal-not-confirmed"),
		"follower-frees-key":    both("inflight/follower-leaves"),
		// The duplicates come when a quarter of the work is done, and the lock was for 100 ms.
		"lock-outlived":     {counted: "inflight/once", inferred: "inflight/once", change: func(o *conformance.Options, _ string) { o.Hold = 800 * time.Millisecond }},
		"stuck-after-abort": both("net/abort-then-retry-resolves"),
		// Whether the client left by FIN or by RST makes no difference to these.
		"released-on-abort":              {counted: "net/abort-then-retry-resolves net/once net/response-lost-then-retry", why: hiddenBug},
		"stored-after-write":             {counted: "net/abort-then-retry-resolves net/once net/response-lost-then-retry", why: hiddenBug},
		"truncated-claims":               both("net/truncated-does-not-claim"),
		"mismatch-executed-then-refused": {counted: "conflict/not-executed outcome/corrected-body scope/other-path-not-answered", why: hiddenBug},
		// What the answers show is a server that refuses; the witness shows the rest.
		"duplicate-executed-then-refused":   {counted: "inflight/once", why: hiddenBug},
		"invalid-key-executed-then-refused": {counted: "key/5000-rejected-4xx key/invalid-not-executed key/malformed-sf-rejected key/two-lines", why: hiddenBug},
		"replay-queues-again":               {counted: "replay/effects-once", why: hiddenBug, change: longer(400 * time.Millisecond)},
		"failed-after-effect":               {counted: "outcome/5xx-resolves outcome/transient-not-pinned", why: hiddenBug},
		"crashed-after-effect":              {why: "outcome/crash-effect shows it and judges nothing: whether a crash may execute again is the server's declared choice"},
		"refused-after-effect":              {counted: "outcome/4xx outcome/transient-not-pinned", why: hiddenBug},
	}
}

// answerSights: what was answered is kept or given wrongly.
func answerSights() map[string]sight {
	return map[string]sight{
		"stuck-after-500": both("outcome/5xx-resolves"),
		// 429 is a 4xx, too.
		"stuck-after-4xx":   both("outcome/4xx outcome/corrected-body ?outcome/transient-not-pinned"),
		"stuck-after-crash": both("outcome/crash-resolves"),
		"error-5xx-stored":  both("outcome/5xx"),
		// A crash is a 500 as well.
		"error-5xx-poisons":     both("outcome/5xx-resolves outcome/crash-resolves"),
		"error-4xx-rerun":       both("outcome/4xx"),
		"transient-pinned":      both("?outcome/transient-not-pinned"),
		"unauthorised-pinned":   {why: "an answer of the handler may be stored, and 401 is one here; what is refused at the door is judged by outcome/unauthorised-not-consumed, and the mock has no door"},
		"error-replayed-as-200": both("outcome/4xx"),
		"replay-rejected":       both("replay/answered"),
		"replay-executes":       {counted: "replay/effects-once", why: hiddenBug},
		// A stored refusal becomes a success.
		"replay-loses-status": both("?replay/status outcome/4xx"),
		"replay-loses-body":   both("?replay/body-bytes"),
		// A large body is lost and cut as any other is.
		"replay-cuts-body":      both("?replay/body-bytes replay/large-body"),
		"replay-respelled":      both("?replay/body-bytes"),
		"replay-wrapped":        both("?replay/body-bytes"),
		"replay-loses-type":     both("?replay/headers"),
		"replay-loses-location": both("?replay/headers"),
		"replay-gives-cookie":   both("?replay/no-set-cookie"),
		"first-marked":          both("replay/not-marked-when-first"),
	}
}
