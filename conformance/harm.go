package conformance

import "slices"

// harm is the damage that a finding shows. Level, impact and fix of a result follow from it,
// and not from the case that happened to see it.
type harm string

const (
	ownHarm   harm = ""          // the subject of the case
	twice     harm = "twice"     // more effects than were asked for
	unasked   harm = "unasked"   // an effect of a refused request
	lost      harm = "lost"      // a success is answered, and there is no effect
	stuck     harm = "stuck"     // the key does not resolve
	denied    harm = "denied"    // a correct request is refused
	otherwise harm = "otherwise" // a repeat gets another answer than the first
	errored   harm = "errored"   // a server error in place of a refusal
)

// consequence is the weight and the advice for a harm, for cases with another subject.
type consequence struct {
	level       Level
	impact, fix string
}

// consequences returns a text for each kind of harm that a finding can show: its level, its impact on a customer, and the advice. A case with a harm
// of its own has these texts in the case.
func consequences() map[harm]consequence {
	return map[harm]consequence{
		twice: {LevelSafety, "What was asked for once has happened more than once: the customer is charged again.",
			"Claim the key in one atomic step before the work (INSERT under a UNIQUE constraint, or SET NX), keep the record after it, and answer every repeat from the record."},
		unasked: {LevelSafety, "The client is told that nothing has happened, and it has: whoever asks again under another key is charged again.",
			"Refuse before the handler runs. Usual cause: the check stands behind the work, or an error while answering hides what was done."},
		lost: {LevelSafety, "A success is told of what has not happened: the order is confirmed, and nobody carries it out.",
			"Answer with a success only what was executed, or what the same request was answered before. Usual cause: the record is found by less than caller, operation and key, or is written before the work."},
		stuck: {LevelLiveness, "The key does not resolve: nobody can learn what became of the request, or go on with it.",
			"Settle the key on every way out of the handler (a deferred function, finally), and give a record that is in progress a lifetime or an owner. Usual cause: only the path of success removes the lock."},
		denied: {LevelMust, "A request that is right is refused: the client cannot learn what became of it.",
			"Compare caller, operation and body, and nothing that changes from one attempt to the next; answer a repeat with the stored outcome."},
		otherwise: {LevelMust, "A retry is told something else than what has happened, and the client acts on it.",
			"Store the outcome once, before the answer is sent, and give every repeat what is stored."},
		errored: {LevelMust, "A client takes it for an outage, and sends again and again what can never succeed.",
			"Check the request before the work, and answer 4xx what cannot be taken. Usual cause: an exception reaches the general error handler."},
	}
}

// tellsOf lists, by harm, the cases with their own impact and fix for it, which are more exact than the general ones. A case may be listed under
// several harms.
func tellsOf() map[harm][]string {
	return map[harm][]string{
		twice: {
			"replay/first-executes-once", "replay/effects-once", "replay/after-a-pause", "replay/after-100-requests", "replay/large-body", "replay/large-answer", "replay/without-body",
			"replay/other-headers", "replay/empty-body-204", "replay/second-path", "replay/second-caller", "replay/other-method", "replay/other-content-type",
			"conflict/not-executed", "conflict/original-survives", "key/short-protected", "key/invalid-not-executed", "key/header-name-case",
			"inflight/once", "inflight/burst", "inflight/around-completion", "inflight/long-work", "inflight/follower-leaves", "inflight/other-body",
			"net/once", "net/response-lost-then-retry", "net/truncated-repeat", "net/slow-upload-duplicate", "net/reset-vs-fin", "net/keep-alive", "net/pipelined-twice", "net/expect-continue",
			"time/not-before", "restart/replay-survives", "restart/no-double-after-kill", "soak/linearizable", "outcome/crash-effect", "outcome/store-outage",
		},
		unasked: {"conflict/not-executed", "token/unknown-refused", "token/other-caller-refused"},
		lost: {
			"conflict/not-silent", "conflict/late-difference", "conflict/one-number-differs", "conflict/large-numbers", "conflict/string-case", "conflict/nested-differs",
			"scope/other-path-not-answered", "scope/other-resource-empty-body", "scope/other-method", "scope/other-principal-not-answered",
			"key/missing-not-merged", "key/empty-not-shared", "key/case-sensitive", "key/digits", "key/hostile-names", "key/255-accepted", "key/non-ascii",
			"inflight/converges", "inflight/refusal-not-confirmed",
		},
		stuck: {
			"outcome/5xx-resolves", "outcome/crash-resolves", "outcome/unauthorised-not-consumed", "inflight/leader-leaves", "inflight/leaves-no-trap", "inflight/converges",
			"net/abort-then-retry-resolves", "restart/inflight-killed-resolves", "inflight/retry-after-honoured", "replay/answered",
		},
		denied:    {"replay/answered", "replay/other-headers", "net/chunked-equals-length", "net/truncated-does-not-claim", "scope/fresh-key-executes", "outcome/unauthorised-not-consumed"},
		otherwise: {"replay/answered", "replay/large-body", "replay/large-answer", "replay/empty-body-204", "inflight/converges"},
		errored:   {"key/invalid-is-4xx", "key/sf-string-accepted"},
	}
}

// tells reports whether the case's own texts on impact and fix fit this kind of harm; else the harm's general texts are used.
func (c *Case) tells(h harm) bool {
	return h == ownHarm || h == lost && c.ownLoss || slices.Contains(tellsOf()[h], c.ID)
}

// consequenceOf returns level, impact and fix of a finding with harm h and verdict v. Where the case's own texts fit h they stay, with the level of
// the harm; else all is the harm's. A warning has LevelShould; a failure has LevelMust at least.
func (c *Case) consequenceOf(h harm, v Verdict) consequence {
	general, own := consequences()[h], consequence{c.Level, c.Impact, c.Fix}
	switch {
	case h == ownHarm:
	case c.tells(h):
		own.level = general.level
	default:
		own = general
	}
	switch {
	case v == VerdictWarn:
		own.level = LevelShould
	case v == VerdictFail && (own.level == LevelShould || own.level == LevelObserve):
		own.level = LevelMust // a failure is more than advice
	}
	return own
}

// heavier reports whether a finding with verdict v and level l weighs more than one with v2
// and l2. The verdict counts first.
func heavier(v Verdict, l Level, v2 Verdict, l2 Level) bool {
	if v.severity() != v2.severity() {
		return v.severity() > v2.severity()
	}
	order := []Level{LevelSafety, LevelLiveness, LevelMust, LevelShould, LevelPolicy, LevelObserve}
	return slices.Index(order, l) < slices.Index(order, l2)
}
