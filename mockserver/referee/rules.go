package referee

import "github.com/oncehttp/oncehttp/mockserver"

// The ids of the rules for clients. The server judges those of package mockserver
// as sends arrive, too; a referee judges all of them at the end.
const (
	ruleKeyPresent    = "key/present"
	ruleKeyValid      = mockserver.RuleKeyValid
	ruleOneKey        = mockserver.RuleOneKey
	ruleKeptConflict  = "key/kept-after-conflict"
	ruleKeptError     = "key/kept-after-error"
	ruleKeptLost      = "key/kept-after-lost-answer"
	ruleKeyUnique     = "key/unique"
	ruleKeyEntropy    = "key/entropy"
	ruleSameBytes     = mockserver.RuleSameBytes
	ruleFirstSent     = mockserver.RuleFirstSent
	ruleBounded       = "attempts/bounded"
	ruleNoOverlap     = mockserver.RuleNoOverlap
	ruleRetryAfter    = mockserver.RuleRetryAfter
	ruleGrows         = "wait/grows"
	ruleJittered      = "wait/jittered"
	ruleMinimum       = "wait/minimum"
	ruleFinal         = mockserver.RuleFinal
	ruleReplay        = "answer/replay-accepted"
	ruleMismatch      = "answer/mismatch-not-retried"
	ruleStoredError   = "answer/stored-error-not-retried"
	ruleLostAsked     = "answer/lost-asked-again"
	ruleProgressAsked = "answer/in-progress-asked-again"
	ruleErrorAsked    = "answer/unavailable-asked-again"
	ruleOneEffect     = "operation/one-effect"
)

// Rule is one rule for clients with idempotency keys.
type Rule struct {
	// ID is a stable slug, group/name.
	ID string
	// Level is the weight of the rule.
	Level Level
	// Text is the rule in one sentence.
	Text string
	// Impact is the consequence of a breach for a customer.
	Impact string
	// Source names the specification or practice behind it.
	Source string
	// URL is the address of the source; "" for field practice.
	URL string
}

const (
	draftURL = "https://datatracker.ietf.org/doc/draft-ietf-httpapi-idempotency-key-header/07/"
	rfc9110  = "https://www.rfc-editor.org/rfc/rfc9110"
)

// Rules returns all rules in the order of a report. The caller owns the list.
func Rules() []Rule {
	return append(keyRules(), attemptRules()...)
}

// keyRules returns the rules for clients about keys and the requests that they name.
func keyRules() []Rule {
	return []Rule{
		{ruleKeyPresent, Safety, "Every attempt of an operation that must happen once carries a key.",
			"An attempt without a key is executed again.", "draft-07 §2.5.1", draftURL},
		{ruleKeyValid, Must, "The key is in one header line and within the bounds that the API publishes.",
			"The server refuses the request, or ignores the key and executes without protection.", "draft-07 §2.1, §2.5.1", draftURL},
		{ruleOneKey, Safety, "One operation has one key, on every attempt and for ever.",
			"The server takes the second key for a second operation: the customer pays twice.", "draft-07 §2.2, §2.5.1", draftURL},
		{ruleKeptConflict, Safety, "A 409 or 422 is not answered with a new key.",
			"The first request may be being handled: a new key executes it a second time.", "draft-07 §2.7", draftURL},
		{ruleKeptError, Safety, "A 5xx or 429 is not answered with a new key.",
			"A 5xx may come after the effect: a new key executes it a second time.", "field practice: Stripe, Adyen", ""},
		{ruleKeptLost, Safety, "A lost answer is not answered with a new key.",
			"The effect may have happened: this is the case that keys exist for.", "draft-07 §1", draftURL},
		{ruleKeyUnique, Safety, "Two operations never share a key.",
			"The second operation is refused, or answered with the first one's result and lost.", "draft-07 §2.2", draftURL},
		{ruleKeyEntropy, Should, "Keys are random enough not to be guessed or to collide, or they name their operation.",
			"Two clients that count from one share keys; a guessed key reads a stranger's answer.", "draft-07 §2.2, §5", draftURL},
		{ruleSameBytes, Safety, "Every attempt with one key has the same target, content type and bytes.",
			"The server refuses the repeat, and the outcome of the first attempt is never learnt.", "draft-07 §2.2", draftURL},
		{ruleFirstSent, Must, "Where the API asks when an operation was first sent, every attempt says the same time.",
			"The server takes the repeat for another request, or takes an old key for one that it still knows.",
			"OASIS Repeatable Requests 1.0", "https://docs.oasis-open.org/odata/repeatable-requests/v1.0/repeatable-requests-v1.0.html"},
		{ruleOneEffect, Safety, "Every operation takes effect at most once.",
			"The customer pays twice.", "draft-07 §1", draftURL},
	}
}

// attemptRules returns the rules for clients about the times of their sends, and about their end.
func attemptRules() []Rule {
	return []Rule{
		{ruleBounded, Must, "The attempts of one operation are bounded.",
			"A server that is down is kept down.", "RFC 9110 §9.2.2", rfc9110},
		{ruleNoOverlap, Must, "No attempt is sent while the one before it is in flight and waited for.",
			"The server has to refuse it, and a server without mutual exclusion executes both.", "draft-07 §2.6", draftURL},
		{ruleRetryAfter, Should, "A Retry-After is waited for.",
			"The repeat comes too early, is refused again, and adds to the load.", "RFC 9110 §10.2.3", rfc9110},
		{ruleGrows, Should, "Where the server does not say how long, the waits grow.",
			"All clients of a server that is down hammer it at a constant rate.", "field practice: AWS, Stripe, Google AIP-194", ""},
		{ruleJittered, Should, "Where the server does not say how long, the waits are random.",
			"Clients that failed together come back together.", "field practice: AWS, Stripe", ""},
		{ruleMinimum, Must, "The least delay between attempts that the API asks for is kept.",
			"The repeat is counted as abuse, or as a duplicate.", "the profile", ""},
		{ruleFinal, Must, "A final answer that was read is not asked for again.",
			"Load without a purpose; past the server's window a second effect.", "draft-07 §2.7", draftURL},
		{ruleReplay, Must, "A replay is accepted as the answer.",
			"The client reports a failure, or goes on asking, though the operation is done.", "draft-07 §2.6", draftURL},
		{ruleMismatch, Must, "A request whose key belongs to another request is not sent again as it is.",
			"It will be refused for ever.", "draft-07 §2.7", draftURL},
		{ruleStoredError, Must, "An error of which the server says that trying again is of no use is not tried again.",
			"The stored error comes back until the key expires, and then there is a second effect.", "field practice: Stripe-Should-Retry", ""},
		{ruleLostAsked, Liveness, "A lost or cut-off answer is asked for again with the same key.",
			"The client does not learn that the operation has happened.", "draft-07 §1", draftURL},
		{ruleProgressAsked, Liveness, "An operation that is still being handled is asked for again.",
			"The client does not learn how it ended.", "draft-07 §2.7", draftURL},
		{ruleErrorAsked, Should, "A 429, 500 or 503 is tried again.",
			"An operation fails that would have succeeded a moment later.", "RFC 9110 §15.6.4", rfc9110},
	}
}
