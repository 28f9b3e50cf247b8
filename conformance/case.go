package conformance

import (
	"slices"
	"strings"
	"time"
)

// Case is one rule, and how it is tried. Cases are data; their ids never change.
type Case struct {
	// ID is a stable slug, group/name.
	ID string `json:"id"`
	// Level says how much the rule weighs.
	Level Level `json:"level"`
	// Since is the version of the case book that introduced it.
	Since string `json:"since"`
	// Spec is where the rule comes from, with the sentence.
	Spec []Ref `json:"spec"`
	// Rule is the requirement in one sentence.
	Rule string `json:"rule"`
	// Impact says what goes wrong for a customer when it is broken.
	Impact string `json:"impact"`
	// Fix says what to change in the server, with the usual causes.
	Fix string `json:"fix,omitempty"`
	// Needs lists abilities of the target; if one is missing, the case is skipped.
	Needs []Need `json:"needs,omitempty"`
	// After lists cases on which this one builds. If one of them fails, this one is skipped.
	After []string `json:"after,omitempty"`
	// Alone: nothing else runs beside it.
	Alone bool `json:"alone,omitempty"`

	ownLoss bool          // its impact and fix fit the harm lost
	lasts   time.Duration // the longest time it may send, its waits aside; zero for most cases
	early   bool          // it waits for long and disturbs no other case: it begins before all others
	run     func(*trial)  // nil for relations of the search
}

// Need is something that a target has to offer.
type Need string

// The needs.
const (
	NeedEffects   Need = "effects"        // a witness of effects, or ids in answers
	NeedWitness   Need = "witness"        // Options.Witness
	NeedDelay     Need = "delay"          // Options.DelayQuery
	NeedFail      Need = "fail"           // Options.FailQuery
	NeedCrash     Need = "crash"          // Options.CrashQuery
	NeedPath      Need = "second path"    // Options.SecondPath
	NeedAction    Need = "action path"    // Options.ActionPath
	NeedPrincipal Need = "second caller"  // Options.As
	NeedHeader    Need = "key in header"  // a profile that carries the key in a header
	NeedJSON      Need = "JSON body"      // a JSON object as the template
	NeedWindow    Need = "window"         // Options.Window of at most 10 s
	NeedExpiry    Need = "expiry"         // Options.Window of at most 10 s, or Options.Expire
	NeedRestart   Need = "restart"        // Options.Restart
	NeedOutage    Need = "outage"         // Options.Outage and Options.Recover
	NeedOwned     Need = "handler"        // the suite supplies the handler: RunHandler
	NeedOASIS     Need = "repeatable"     // a profile of Repeatability-Request-ID
	NeedSecret    Need = "credential"     // an Authorization field in Options.Header
	NeedToken     Need = "token"          // Options.TokenPath
	NeedAlphabet  Need = "any key format" // a profile that takes more than UUIDs
)

// missing returns the reason for which a case cannot be run if the target lacks the ability n, with the flag that supplies it; "" if the target has
// it. owned: the suite supplies the handler behind the target, and so needs no options to count effects or to make operations slow or fail.
// NeedEffects is not looked at: only the probe shows whether effects can be seen.
func (r *runner) missing(n Need) string {
	o := &r.o
	owned := r.steering.ownsHandler()
	for _, t := range []struct {
		need Need
		have bool
		why  string
	}{
		{NeedWitness, owned || o.Witness != "", "it needs a witness that counts effects (--witness)"},
		{NeedDelay, owned || o.DelayQuery != "", "it needs a way to make one operation slow (--delay-query)"},
		{NeedFail, owned || o.FailQuery != "", "it needs a way to make one operation fail (--fail-query)"},
		{NeedCrash, owned || o.CrashQuery != "", "it needs a way to make a handler crash (--crash-query)"},
		{NeedPath, o.SecondPath != "", "it needs another operation that takes the same body (--second-path)"},
		{NeedAction, o.ActionPath != "", "it needs an operation without a body on what was made (--action-path)"},
		{NeedPrincipal, o.As != nil, "it needs a second caller (--as)"},
		{NeedHeader, o.inHeader(), "the profile does not carry the key in a header"},
		{NeedJSON, r.jsonBody(), "it needs a JSON object as body"},
		{NeedWindow, o.Window > 0 && o.Window <= windowMax, "it needs a window of at most 10 s (--window)"},
		{NeedExpiry, o.Expire != nil || o.Window > 0 && o.Window <= windowMax, "it needs a window of at most 10 s, or a way to let keys expire (--window, --expire-cmd)"},
		{NeedRestart, o.Restart != nil, "it needs a way to kill and start the target (--restart-cmd)"},
		{NeedOutage, o.Outage != nil && o.Recover != nil, "it needs a way to take the target's store away (--outage-cmd, --recover-cmd)"},
		{NeedOwned, owned, "it needs a handler that the suite supplies (RunHandler)"},
		{NeedOASIS, strings.EqualFold(o.Profile.Carrier.Name, oasisHeader), "the profile is not of Repeatability-Request-ID"},
		{NeedSecret, o.Header.Get("Authorization") != "", "it needs a credential (--header with Authorization)"},
		{NeedToken, o.handsOutKeys(), "it needs a server that hands its keys out (--token-path)"},
		{NeedAlphabet, r.anyFormat(), "the profile takes keys of one format only"},
	} {
		if t.need == n && !t.have {
			return t.why
		}
	}
	return ""
}

// Limit returns the longest time of one try of the case with these options. A longer try is cut short and inconclusive. It is made of four answers,
// one wait of Options.Settle for a key that does not resolve, and the case's own waits, twice: for an expiry, a restart, or its many requests.
func (c *Case) Limit(o Options) time.Duration {
	o = o.withDefaults()
	limit := o.Settle + 4*o.AnswerTimeout
	for _, need := range c.Needs {
		switch need {
		case NeedWindow, NeedExpiry:
			limit += 2 * o.Window
		case NeedRestart, NeedOutage:
			limit += 2 * max(o.Settle, comeBack) // until it is back
		}
	}
	limit += 2 * c.lasts // the longest time in which it may send; zero for most
	if c.Alone {
		limit += 2 * o.Settle // it sends many requests
	}
	return limit
}

// Refs joins the names of the sources, for a list on one line.
func (c *Case) Refs() string {
	var names []string
	for _, ref := range c.Spec {
		names = append(names, ref.Name)
	}
	return strings.Join(names, ", ")
}

// Group returns the part of the id before the slash.
func (c *Case) Group() string {
	group, _, _ := strings.Cut(c.ID, "/")
	return group
}

// missed returns the verdict on a rule of this level that the target breaks: a failure, a warning, or an observation.
func missed(l Level) Verdict {
	switch l {
	case LevelShould:
		return VerdictWarn
	case LevelObserve:
		return VerdictSeen
	}
	return VerdictFail
}

// IDs returns the ids of all cases, in the order of a report.
func IDs() []string {
	var ids []string
	for _, c := range Cases() {
		ids = append(ids, c.ID)
	}
	return ids
}

// Find returns the case with that id: one of the ordinary cases (Cases), of the random search (Relations), or of the runs with very many requests
// (Volumes). It returns false if there is none.
func Find(id string) (Case, bool) {
	all := slices.Concat(Cases(), Relations(), Volumes())
	i := slices.IndexFunc(all, func(c Case) bool { return c.ID == id })
	if i < 0 {
		return Case{}, false
	}
	return all[i], true
}
