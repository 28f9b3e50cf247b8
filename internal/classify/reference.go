package classify

import (
	"encoding/json"
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
)

// ByReference returns the finding from the answer to a lookup by p's Reference. asked returns the values in the request's
// body by their pointers. Nothing is proved if a value to be compared is missing on either side, or if a 404 may come
// from something in front of the API.
func ByReference(p *profile.Profile, asked func(pointer string) any, a Answer) Finding {
	ref, r := p.Reference, reader{Answer: a}
	switch {
	case a.Status == http.StatusNotFound && ref.List == "" && r.refusal(p).Kind == KindFinal:
		return FindingNone
	case a.Status < 200 || a.Status >= 300 || !a.Whole:
		return FindingUnclear
	}
	resource := jsonpointer.Decode(a.Body)
	if ref.List != "" {
		list, isList := jsonpointer.Value(resource, ref.List).([]any)
		switch {
		case !isList:
			return FindingUnclear
		case len(list) == 0:
			return FindingNone
		case len(list) > 1:
			return FindingOther
		}
		resource = list[0]
	}
	return compare(ref.Same, asked, resource)
}

// compare compares the values of a request with those of a resource at the API, each pair in same. All must be equal for FindingSame. One that
// differs gives FindingOther, and one that is missing or not comparable FindingUnclear.
func compare(same []profile.Same, request func(pointer string) any, resource any) Finding {
	if len(same) == 0 {
		return FindingUnclear
	}
	finding := FindingSame
	for _, s := range same {
		asked, stated := request(s.Request), jsonpointer.Value(resource, s.Resource)
		if !isScalar(asked) || !isScalar(stated) {
			return FindingUnclear
		}
		switch same, known := equal(asked, stated); {
		case !known:
			return FindingUnclear
		case !same:
			finding = FindingOther
		}
	}
	return finding
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

func isNumber(value any) bool {
	_, is := value.(json.Number)
	return is
}

func scalarText(value any) string {
	text, _ := jsonpointer.Text([]any{value}, "/0")
	return text
}

// decimalBytesMax bounds the length of numbers compared by value.
const decimalBytesMax = 64

// decimal returns the value of a plain decimal number. It takes no exponent and no long text, so that a hostile answer costs little.
func decimal(text string) (*big.Rat, bool) {
	if text == "" || len(text) > decimalBytesMax || strings.Trim(text, "0123456789.-") != "" {
		return nil, false
	}
	return new(big.Rat).SetString(text)
}
