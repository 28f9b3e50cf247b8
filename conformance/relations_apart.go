package conformance

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
)

// apartRelations returns the differences beside the body: path, method, caller, and keys that are nearly the same. Such a request is another
// operation (apart), or, where a server may choose, the same (free). change makes the difference; false means that it cannot. keyed takes two
// functions: key returns the first request's key from a fresh one (nil: that itself), changed the key of the differing request from it.
func apartRelations() []relation {
	apartFrom := func(id, words string, change func(*runner, *operation) bool, needs ...Need) relation {
		return relation{
			id: id, words: words, bearing: apart, level: LevelSafety, needs: needs, change: change,
			rule: "A request " + words + " is another operation: it is refused, or executed as one of its own, and never given the first outcome.",
		}
	}
	keyed := func(id, words string, key, changed func(string) string) relation {
		rel := apartFrom(id, "under a key "+words, func(_ *runner, op *operation) bool {
			before := op.key
			op.key = changed(before)
			return op.key != before
		}, NeedHeader, NeedAlphabet)
		rel.key = key
		return rel
	}
	mayBeSame := func(id, words string, change func(*runner, *operation) bool) relation {
		rel := apartFrom(id, words, change)
		rel.bearing = free
		rel.rule = "A request " + words + " is the same operation, refused, or one of its own: the first one keeps its one effect and its outcome."
		return rel
	}
	failing := mayBeSame(failsFirst, "that fails with 500", func(r *runner, op *operation) bool {
		r.steering.fail(op, http.StatusInternalServerError, 0)
		return true
	})
	failing.needs = []Need{NeedFail}
	failing.rule = "A request that fails keeps its failure, or frees the key: of those that come after it or wait for it one is executed at most."
	return []relation{
		failing,
		apartFrom("path", "to another path", func(r *runner, op *operation) bool { op.setPath(r.o.SecondPath); return true }, NeedPath),
		apartFrom("method", "with another method", changeMethod),
		apartFrom("caller", "of another caller", func(_ *runner, op *operation) bool { op.stranger = true; return true }, NeedPrincipal),
		keyed("key-case", "in the other case", func(fresh string) string { return "Order-" + fresh }, strings.ToLower), // UUIDs may be compared without regard to case
		keyed("key-tail", "with one character more", nil, func(key string) string { return key + "x" }),
		// long, for servers that compare the beginning of a key only
		keyed("key-end", "with another last character", func(fresh string) string { return fresh + strings.Repeat("-", keyEndBytes) + "a" },
			func(key string) string { return key[:len(key)-1] + "b" }),
		keyed("key-digits", "of digits with another last one", digitsOnly, func(key string) string { return key[:len(key)-1] + "8" }),
		keyed("key-encoded", "with a letter for its code in URLs", func(fresh string) string { return fresh + "%41" }, func(key string) string { return strings.TrimSuffix(key, "%41") + "A" }),
		mayBeSame("query", "with a query", func(_ *runner, op *operation) bool { op.addQuery("explored=1"); return true }),
		mayBeSame("content-type", "with a charset in its Content-Type", func(_ *runner, op *operation) bool { op.contentType += "; charset=utf-8"; return true }),
	}
}

// failsFirst is the relation of a request that fails, under a key whose others do not.
const failsFirst = "fails-first"

// changeMethod gives the operation another method: Options.OtherMethod, or PATCH, or PUT. It returns false if that is the usual method.
func changeMethod(r *runner, op *operation) bool {
	op.method = r.o.OtherMethod
	if op.method == "" {
		op.method = http.MethodPatch
		if r.o.Method == op.method {
			op.method = http.MethodPut
		}
	}
	return op.method != r.o.Method
}

// keyEndBytes is the distance, in bytes, between a fresh key and the last character of its
// variant.
const keyEndBytes = 150

// digitsOnly returns a key of 25 digits from a fresh key. Its last digit is 7, its first is not 0. As a number it would lose its last digits.
func digitsOnly(fresh string) string {
	digits := []byte(digestHex(fresh)[:24])
	for i, c := range digits {
		digits[i] = '1' + c%9
	}
	return string(digits) + "7"
}

// lastMemberFirst returns a JSON object with its last member in front of the others. False:
// object has fewer than two members, or is none, and comes back as it is.
func lastMemberFirst(object []byte) ([]byte, bool) {
	decoder := json.NewDecoder(bytes.NewReader(object))
	if start, err := decoder.Token(); err != nil || start != json.Delim('{') {
		return object, false
	}
	var members []string
	for decoder.More() {
		name, err := decoder.Token()
		var value json.RawMessage
		if err != nil || decoder.Decode(&value) != nil {
			return object, false
		}
		text, _ := name.(string) // the name of a member is a string
		quoted, err := json.Marshal(text)
		if err != nil {
			return object, false
		}
		members = append(members, string(quoted)+":"+string(value))
	}
	last := len(members) - 1
	if last < 1 {
		return object, false
	}
	return []byte("{" + strings.Join(append([]string{members[last]}, members[:last]...), ",") + "}"), true
}
