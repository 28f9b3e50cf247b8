package conformance

import (
	"fmt"
	"slices"
	"strings"
)

// bearing is the correct answer to a request that differs from the first one of its key in a
// relation.
type bearing uint8

const (
	sameForm bearing = iota // the first outcome; the relation is a form on the wire
	course                  // the first outcome; the relation is the time or manner of sending
	other                   // a refusal without an effect: it is another request
	either                  // the first outcome or a refusal: the server may choose
	apart                   // a refusal, or an outcome of its own: it is another operation
	free                    // any of the three
)

// relation is one difference between requests of a sequence, with the correct answer to it.
// The values of relations do not change.
type relation struct {
	id      string // without the prefix "explore/"
	words   string // in a report, after "the request, ": "in chunks"
	rule    string // in one sentence
	bearing bearing
	level   Level  // of a broken rule
	needs   []Need // as Case.Needs
	// member is a member of the JSON body with the value one in the first request, and two in
	// the request that differs. An empty value: the body is without it. "": change makes the
	// difference.
	member, one, two string
	// key returns the key of the first request from a fresh key. Nil: the fresh key itself.
	key func(fresh string) string
	// change makes the difference in op. It returns false if it cannot. Nil for relations with
	// a member, and for those of form and course.
	change func(r *runner, op *operation) bool
	// covers lists the relations with the same cause: if this one is a finding, the search
	// leaves them out.
	covers []string
}

// exploredIDs is the group of the relations' ids.
const exploredIDs = "explore/"

// relations lists all relations of the search, in the order of a report. A relation is a kind of difference between requests, or a way of sending
// them, with the correct answer to it.
func relations() []relation {
	return slices.Concat(formRelations(), courseRelations(), bodyRelations(), spellingRelations(), apartRelations())
}

// Relations returns the relations of the search (Options.Explore) as cases, in the order of a report. A relation is a kind of difference between
// requests, or a way of sending them.
func Relations() []Case {
	var all []Case
	for _, rel := range relations() {
		all = append(all, rel.asCase())
	}
	return all
}

// asCase returns the relation (a kind of difference between requests) as a case, for lists and reports. It cannot be run: only the search sends
// requests with it.
func (rel *relation) asCase() Case {
	return Case{
		ID: exploredIDs + rel.id, Level: rel.level, Since: "1.1", Needs: rel.needs, Rule: rel.rule,
		Spec: []Ref{invariant("S1"), invariant("S2"), invariant("S4")}, Impact: rel.impact(), Fix: rel.fix(),
		ownLoss: rel.bearing == other || rel.bearing == apart, // impact and fix fit a success told of what never happened
	}
}

// fix returns the advice for a server that breaks the rule of the relation, a kind of difference between requests.
func (rel *relation) fix() string {
	switch rel.bearing {
	case other: // another request under the same key
		return "Store a hash of the whole request with the key, and compare it on each repeat: the sequence shows what is not compared now."
	case apart: // the same key of another caller, method or path
		return "Find a record by caller, method, path and the key as it was sent, or compare them with what is stored: the sequence shows what is left out now."
	}
	return "The sequence in the report is the shortest that fails: follow the record of its key through it."
}

// impact returns the damage to a customer of a server that breaks the relation's rule. It depends on the correct answer to such a request (bearing),
// which the server did not give.
func (rel *relation) impact() string {
	switch rel.bearing {
	case other, apart:
		return "What was asked for is confirmed with the answer to something else, and never happens."
	case sameForm, course:
		return "A retry has a second effect, or cannot learn of the first."
	}
	return "A request has a second effect under a key that has had its effect."
}

// formRelations returns the differences on the wire only, which another attempt of the same request may have.
func formRelations() []relation {
	form := func(id, words string) relation {
		return relation{
			id: id, words: words, bearing: sameForm, level: LevelSafety,
			rule: "A repeat " + words + " is the same request: it gets the first outcome, and has no effect.",
		}
	}
	return []relation{
		form("connection", "on one connection with others"), form("chunked", "in chunks"), form("expect", "with Expect: 100-continue"),
		form("slices", "in two pieces"), form("field-order", "with its header fields in another order"), form("field-names", "with lower-case header names"),
		form("more-fields", "with header fields of another client"), form("accept", "that accepts another type"), form("closing", "with Connection: close"),
	}
}

// courseRelations returns the differences in time and in the manner of sending: repeats, pauses, overlaps, clients that leave, failures. All of them
// have the first outcome (course). words describes such a request in the report.
func courseRelations() []relation {
	step := func(id, words, rule string, needs ...Need) relation {
		return relation{id: id, words: words, rule: rule, bearing: course, level: LevelSafety, needs: needs}
	}
	return []relation{
		step("repeat", "again", "A repeat gets the first outcome, however often it comes, and has no effect."),
		step("pause", "after a pause", "A repeat after a pause gets the first outcome, and has no effect."),
		step("others", "after other operations", "A repeat gets the first outcome, whatever other keys were used since, and they get theirs."),
		step("others-fail", "while another operation fails", "A request gets its outcome, and keeps it, whatever fails beside it.", NeedDelay, NeedFail),
		step("large-5k", "with a body of 5 KiB", "A request with a large body is protected as any other.", NeedJSON),
		step("large-60k", "with a body of 60 KiB", "A request with a large body is protected as any other.", NeedJSON),
		step("overlap", "while the one before is at work", "A repeat of a request that is at work waits or is told to, and has no effect.", NeedDelay),
		step("at-once", "several times at once", "Of requests that arrive at once one has an effect, and all get its outcome in the end."),
		step("leaves", "whose client leaves before the answer", "A request whose client has left has one effect at most, and its key resolves."),
		step("reset", "whose client resets the connection", "A request whose connection was reset has one effect at most, and its key resolves."),
		step("cut", "cut off in its body", "A request that was cut off has no effect, and its key serves the whole one."),
		step("fails-500", "that fails with 500", "A key whose request has failed resolves, and has one effect at most.", NeedFail),
		step("fails-503", "that is answered 503", "A key whose request was put off resolves, and has one effect at most.", NeedFail),
		step("fails-402", "that is declined with 402", "A request that was declined has no effect, and its key resolves.", NeedFail),
		step("crash", "whose handler crashes", "A key whose handler has crashed resolves, and has one effect at most.", NeedCrash),
	}
}

// bodyRelations returns the differences that give a body another meaning: id, words for the report, the member that differs, its two values as JSON
// ("" means that it is missing), and the ids of relations whose faults a fault with this one explains. A fault with the first, "amount", explains
// faults with all others: it has no member, and raises each number in the body. late changes a text behind its first size bytes.
func bodyRelations() []relation {
	nested := func(depth int, leaf string) string {
		return strings.Repeat(`{"in":`, depth) + leaf + strings.Repeat("}", depth)
	}
	late := func(size int) relation {
		rel := differs(fmt.Sprintf("late-%dk", size>>10), fmt.Sprintf("another character behind %d KiB", size>>10), fmt.Sprintf("terms%d", size>>10), "", "")
		rel.one, rel.two = `"`+strings.Repeat("x", size)+`one"`, `"`+strings.Repeat("x", size)+`two"`
		return rel
	}
	deep := []string{"nested-2", "nested-4", "list-object"}
	all := []relation{
		differs("amount", "another number", "", "", ""), differs("text", "another text", "note", `"blue"`, `"grey"`, "text-case", "text-blank", "text-form", "late-2k", "late-20k", "late-100k"),
		differs("member-more", "one member more", "extra", "", `"yes"`), differs("member-less", "one member less", "less", `"yes"`, ""),
		differs("truth", "true for false", "express", "false", "true"), differs("kind", "a text for a number", "count", "1", `"1"`), differs("fraction", "another fraction", "rate", "1.25", "1.5"),
		differs("sign", "another sign", "balance", "5", "-5"), differs("zero", "0 for null", "discount", "null", "0"),
		differs("nested-1", "another value inside an object", "delivery", nested(1, `"Aachen"`), nested(1, `"Bremen"`), deep...),
		differs("nested-2", "another value two objects deep", "customer", nested(2, `"Aachen"`), nested(2, `"Bremen"`), "nested-4"),
		differs("nested-4", "another value four objects deep", "route", nested(4, `7`), nested(4, `8`)),
		differs("list", "another element of a list", "items", `["apple","bread"]`, `["apple","candle"]`, "list-object", "list-order", "list-length"),
		differs("list-length", "one element of a list more", "parts", `[1,2]`, `[1,2,3]`),
		differs("list-object", "another value of an object in a list", "lines", `[{"sku":1},{"sku":2}]`, `[{"sku":1},{"sku":3}]`),
		late(2 << 10), late(20 << 10), late(100 << 10),
	}
	all[0].change, all[0].needs = changeNumbers, nil
	all[0].level = LevelSafety
	all[0].covers = bodyIDs(all)
	return all
}

// differs returns a relation: a JSON member has another value than in the first request. words names the difference in the report. one and two are
// the two values as JSON; "" means that the member is missing. covers lists the ids of other relations whose faults a fault with this one explains,
// so that the search leaves them out.
func differs(id, words, member, one, two string, covers ...string) relation {
	return relation{
		id: id, words: "with " + words, rule: "A request with " + words + " is another one: it is refused under the key, and has no effect.",
		bearing: other, level: LevelMust, needs: []Need{NeedJSON}, member: member, one: one, two: two, covers: covers,
	}
}

// bodyIDs lists the ids of all relations (kinds of difference between two requests) that concern the body, except all[0], a changed number. That one
// covers them: a server that does not see another number does not see the others either.
func bodyIDs(all []relation) []string {
	var ids []string
	for _, rel := range slices.Concat(all[1:], spellingRelations()) {
		ids = append(ids, rel.id)
	}
	return ids
}

// changeNumbers adds one to each number in the body. It returns false if there is none.
func changeNumbers(r *runner, op *operation) bool {
	before := string(op.body)
	if r.o.ContentType == formType {
		op.body = bumpFields(op.body)
	} else {
		op.body = bumpNumbers(op.body)
	}
	return string(op.body) != before
}

// spellingRelations returns the differences in the spelling of a body, which do not change its meaning, and in details of it. A server may take such
// a request for the same one, or refuse it (either). one and two are the two values of a member as JSON; "" means that it is missing. value is a
// difference in one member, spelled one that a function makes.
func spellingRelations() []relation {
	spelled := func(id, words string, change func(*runner, *operation) bool) relation {
		return relation{
			id: id, words: "with " + words, bearing: either, level: LevelSafety, needs: []Need{NeedJSON}, change: change,
			rule: "A request with " + words + " is answered as the same one or refused, and never executed under the same key.",
		}
	}
	value := func(id, words, member, one, two string) relation {
		rel := spelled(id, words, nil)
		rel.member, rel.one, rel.two = member, one, two
		return rel
	}
	return append(detailRelations(),
		spelled("member-order", "its members in another order", reorderMembers), spelled("white-space", "other white space", spaced),
		value("escape", "an escape for a letter", "mark", `"A"`, `"\u0041"`), value("null-absent", "null for an absent member", "coupon", "", "null"),
		value("one-point-zero", "1.0 for 1", "factor", "1", "1.0"), value("exponent", "1e2 for 100", "units", "100", "1e2"),
	)
}

// detailRelations returns the differences in a body that servers often take for none, such as upper and lower case: id, words for the report, the
// member that differs, and its two values as JSON. A server that misses one is warned only (LevelShould).
func detailRelations() []relation {
	all := []relation{
		differs("text-case", "a text in another case", "code", `"Blue"`, `"blue"`), differs("text-blank", "a blank at the end of a text", "label", `"blue"`, `"blue "`),
		differs("text-form", "a letter in another Unicode form", "name", `"Jos\u00e9"`, `"Jose\u0301"`), differs("large-number", "a number beyond 2^53 that is one higher", "account", "9007199254740992", "9007199254740993"),
		differs("list-order", "a list in another order", "steps", `["a","b"]`, `["b","a"]`),
	}
	for i := range all {
		all[i].level = LevelShould
	}
	return all
}

// reorderMembers puts the last member of the body first. It returns false if the body has no two members.
func reorderMembers(_ *runner, op *operation) bool {
	swapped, ok := lastMemberFirst(op.body)
	op.body = swapped
	return ok
}

// spaced puts a blank behind the first brace of the body. It always returns true: each body can be changed so.
func spaced(_ *runner, op *operation) bool {
	op.body = []byte(strings.Replace(string(op.body), "{", "{ ", 1))
	return true
}
