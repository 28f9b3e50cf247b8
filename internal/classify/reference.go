package classify

import (
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"
	"strings"

	"github.com/oncehttp/oncehttp/internal/jsonpointer"
	"github.com/oncehttp/oncehttp/profile"
)

// Finding is the result of a lookup by business reference. The zero value claims nothing.
type Finding uint8

// The findings.
const (
	FindingUnclear Finding = iota // the lookup does not tell
	FindingNone                   // no resource has the reference
	FindingSame                   // exactly one has, and it is the requested one
	FindingOther                  // one has, and differs from the request; or several have
	FindingRefused                // exactly one has, it is the requested one, and it says that it was refused
)

// ByReference returns the finding from the answer to a lookup by p's Reference. asked returns the values in the request's body by their pointers. Nothing is
// proved if a value to be compared is missing on either side, or if a 404 may come from something in front of the API. An API with a List says "none" by an
// empty one, and never by a 404. A resource that the profile's verdicts read as anything but a success or a refusal does not tell, either. why says in words
// what stands against FindingSame, for FindingUnclear and FindingOther; it holds pointers, and no values.
func ByReference(p *profile.Profile, asked func(pointer string) any, a Answer) (finding Finding, why string) {
	ref, r := p.Reference, reader{answer: content{Answer: a}}
	switch {
	case a.Status == http.StatusNotFound && ref.List == "" && r.refusal(p).Kind == KindFinal:
		return FindingNone, ""
	case a.Status < 200 || a.Status >= 300:
		return FindingUnclear, fmt.Sprintf("the lookup was answered %d", a.Status)
	case !a.Whole:
		return FindingUnclear, "the lookup's answer is too large"
	}
	resource := jsonpointer.Decode(a.Body)
	if resource == nil {
		return FindingUnclear, "the lookup's answer is no JSON"
	}
	if ref.List != "" {
		list, isList := jsonpointer.Value(resource, ref.List).([]any)
		switch {
		case !isList:
			return FindingUnclear, "the lookup's answer has no list at " + ref.List
		case len(list) == 0:
			return FindingNone, ""
		case len(list) > 1:
			return FindingOther, fmt.Sprintf("the lookup found %d resources", len(list))
		}
		resource = list[0]
	}
	finding, why = compare(ref.Same, asked, resource)
	if finding == FindingSame && len(p.Verdicts) > 0 {
		switch proofOf(resource, p.Verdicts) {
		case profile.ProvesSucceeded:
		case profile.ProvesRefused:
			return FindingRefused, ""
		default:
			return FindingUnclear, "what the lookup found is no success by the profile's verdicts, and no refusal"
		}
	}
	return finding, why
}

// proofOf returns the outcome that the profile's verdicts read in a resource.
func proofOf(resource any, list []profile.Verdict) profile.Proof {
	body, err := json.Marshal(resource)
	if err != nil {
		return profile.ProvesUnknown
	}
	r := content{Answer: Answer{Body: body, Whole: true}}
	return r.proof(list)
}

// AlreadyDone returns the verdict on an operation whose answer said that it took effect before. done is the verdict on that answer, and found is the answer of
// the resource that it names; zero if there is none. The profile's verdicts read the resource as they read a 2xx. If no earlier attempt of the operation is in
// doubt (inDoubt), another request has made the resource: it counts only if it repeats the values of this one. request is the body of the operation.
func AlreadyDone(p *profile.Profile, done Verdict, request []byte, found Answer, inDoubt bool) Verdict {
	r := content{Answer: found}
	if len(p.Verdicts) > 0 {
		switch r.proof(p.Verdicts) {
		case profile.ProvesSucceeded:
		case profile.ProvesRefused:
			return Verdict{Kind: KindFinal, Refused: true, Stored: done.Stored, Replayed: done.Replayed}
		default:
			return Verdict{Kind: KindUnknown, Hold: true, Reason: ReasonUnclear}
		}
	}
	if !inDoubt && !(found.Whole && Repeats(request, found.Body)) {
		return Verdict{Kind: KindUnknown, Hold: true, Reason: ReasonDuplicate}
	}
	return done
}

// Repeats reports whether a resource has each value of a request at the same place, and the request has at least one. Both are JSON; no other request is
// repeated.
func Repeats(request, resource []byte) bool {
	return repeats(jsonpointer.Decode(request), jsonpointer.Decode(resource))
}

// repeats reports whether a resource has each value of a request at the same place, and the request has at least one. Both are decoded JSON values. A scalar is
// repeated by an equal one, an object member by member; an empty object never is.
func repeats(request, resource any) bool {
	members, isObject := request.(map[string]any)
	if !isObject || len(members) == 0 {
		return isScalar(request) && sameValue(request, resource)
	}
	is, _ := resource.(map[string]any)
	for name, value := range members {
		if list, isList := value.([]any); isList {
			if !repeatsEach(list, is[name]) {
				return false
			}
			continue
		}
		if !repeats(value, is[name]) {
			return false
		}
	}
	return true
}

// repeatsEach reports whether the resource has a list of the same length, and each entry repeats the one at its place (see repeats). An empty list is never
// repeated.
func repeatsEach(list []any, resource any) bool {
	is, _ := resource.([]any)
	if len(is) != len(list) || len(list) == 0 {
		return false
	}
	for i := range list {
		if !repeats(list[i], is[i]) {
			return false
		}
	}
	return true
}

// sameValue reports whether two JSON values are equal scalars.
func sameValue(a, b any) bool {
	if !isScalar(a) || !isScalar(b) {
		return false
	}
	same, known := equal(a, b)
	return same && known
}

// ObjectID returns the id of the one object in a JSON answer: its member id, or that of the one object inside, alone or in a list. It is empty if there is none,
// or deeper than idDepthMax objects.
func ObjectID(body []byte) string {
	document := jsonpointer.Decode(body)
	for range idDepthMax {
		object, isObject := document.(map[string]any)
		if !isObject {
			return ""
		}
		if id := object["id"]; isScalar(id) {
			return scalarText(id)
		}
		document = onlyObject(object)
	}
	return ""
}

// idDepthMax is the number of objects, each inside the one before, in which ObjectID looks.
const idDepthMax = 3

// onlyObject returns the one object among the members of another, alone or in a list; nil if there is none, or several.
func onlyObject(object map[string]any) (only any) {
	for _, value := range object {
		if list, isList := value.([]any); isList && len(list) == 1 {
			value = list[0]
		}
		inner, isObject := value.(map[string]any)
		switch {
		case !isObject:
		case only != nil:
			return nil
		default:
			only = inner
		}
	}
	return only
}

// compare compares the values of a request with those of a resource at the API, each pair in same. All must be equal for FindingSame. One that differs gives
// FindingOther, and one that is missing or not comparable FindingUnclear, also after one that differs: then nothing is proved. why is as in ByReference.
func compare(same []profile.Same, request func(pointer string) any, resource any) (finding Finding, why string) {
	if len(same) == 0 {
		return FindingUnclear, "the profile names no values to compare"
	}
	finding = FindingSame
	for _, s := range same {
		asked, stated := request(s.Request), jsonpointer.Value(resource, s.Resource)
		switch {
		case !isScalar(asked):
			return FindingUnclear, "the request has no value at " + s.Request
		case !isScalar(stated):
			return FindingUnclear, "what the lookup found has no value at " + s.Resource
		}
		switch same, known := equal(asked, stated); {
		case !known:
			return FindingUnclear, "what the lookup found has a number at " + s.Resource + " that is not compared"
		case !same:
			finding, why = FindingOther, "what the lookup found has another value at "+s.Resource+" than the request at "+s.Request
		}
	}
	return finding, why
}

// isScalar reports whether a JSON value is a text, a number or a truth value, which can be compared.
func isScalar(value any) bool {
	switch value.(type) {
	case string, bool, json.Number:
		return true
	}
	return false
}

// equal compares two scalars. A number equals another spelling of itself, also as a string: 100, 100.0 and "100.00". known is
// false if a number has an exponent, or more than decimalBytesMax bytes: then it is not compared by value.
func equal(a, b any) (same, known bool) {
	x, y := scalarText(a), scalarText(b)
	_, aText := a.(string)
	_, bText := b.(string)
	if x == y || aText && bText { // two texts are references, such as 7 and 07
		return x == y, true
	}
	p, pOK := decimal(x)
	q, qOK := decimal(y)
	switch {
	case pOK && qOK:
		return p.Cmp(q) == 0, true
	case isNumber(a) && !pOK, isNumber(b) && !qOK:
		return false, false
	}
	return false, true
}

// isNumber reports whether a JSON value is a number.
func isNumber(value any) bool {
	_, is := value.(json.Number)
	return is
}

// scalarText returns a JSON value as jsonpointer.Text writes it; "" for an object or a list.
func scalarText(value any) string {
	text, _ := jsonpointer.Text([]any{value}, "/0")
	return text
}

// decimalBytesMax bounds the length of numbers compared by value.
const decimalBytesMax = 64

// decimal returns the value of a plain decimal number. It takes no exponent and no long text, so that a hostile answer costs little. The second result is false
// for any other text.
func decimal(text string) (*big.Rat, bool) {
	if text == "" || len(text) > decimalBytesMax || strings.Trim(text, "0123456789.-") != "" {
		return nil, false
	}
	return new(big.Rat).SetString(text)
}
