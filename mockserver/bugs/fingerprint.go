package bugs

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// comparedBytesMax is the length of the part of a body that body-prefix-only compares.
const comparedBytesMax = 1 << 10

// fingerprintBugs returns the bugs of comparing too little of a request, or too much.
func fingerprintBugs() []Bug { return slices.Concat(bytesBugs(), depthBugs(), detailBugs()) }

// bytesBugs returns the bugs of a server that compares less than the bytes of a request under a used key, or more. Cases are the test cases that must
// find the bug. Print changes what is compared of a request: method, path, query, Content-Type, and the body last.
func bytesBugs() []Bug {
	return []Bug{
		{
			Name: "body-length-only", Description: "Bodies are compared by their length alone.",
			Impact: "The customer changes 100 to 900, is told 201, and 100 is charged.",
			Cases:  []string{"conflict/not-silent"},
			change: comparedAs(func(body string) string { return strconv.Itoa(len(body)) }),
		}, {
			Name: "body-prefix-only", Description: "Only the first 1 KiB of a body is compared.",
			Impact: "A long order with another last item is answered with the first one, and never placed.",
			Cases:  []string{"conflict/late-difference"},
			change: comparedAs(func(body string) string { return body[:min(len(body), comparedBytesMax)] }),
		}, {
			Name: "content-type-ignored", Description: "The same bytes with another Content-Type are answered with the first answer.",
			Impact: "Bytes that mean something else are taken for the first request.", change: without(printType),
		}, {
			Name: "volatile-header-compared", Description: "User-Agent and Traceparent belong to what a key names.",
			Impact: "A retry after an update of the client is refused, and the outcome never learnt.",
			Cases:  []string{"replay/other-headers"},
			change: mutation{Print: func(r *http.Request, parts []string) []string {
				return append(parts, r.Header.Get("User-Agent"), r.Header.Get("Traceparent"), r.Header.Get("X-Request-Id"))
			}},
		}, {
			Name: "route-compared", Description: "The route is compared, not the path: one id in it is as good as another.",
			Impact: "Cancelling order B is answered with the cancellation of order A: B is shipped.",
			Cases:  []string{"scope/other-resource-empty-body"},
			change: mutation{Print: func(_ *http.Request, parts []string) []string {
				segments := strings.Split(parts[printPath], "/")
				if len(segments) > 2 {
					segments[2] = "{id}"
				}
				parts[printPath] = strings.Join(segments, "/")
				return parts
			}},
		},
	}
}

// depthBugs returns the bugs of a server that compares a JSON body at its top only. Cases are the test cases that must find the bug.
func depthBugs() []Bug {
	return []Bug{
		{
			Name: "nested-ignored", Description: "Only the members at the top of a JSON body are compared, not what is inside them.",
			Impact: "The customer changes the address inside the order, is told 201, and it goes to the old one.",
			Cases:  []string{"conflict/nested-differs"},
			change: comparedAsJSON(func(depth int, value any) any {
				switch value.(type) {
				case map[string]any, []any:
					if depth > 0 {
						return nil
					}
				}
				return value
			}),
		}, {
			Name: "arrays-ignored", Description: "Arrays in a JSON body are compared by their length alone.",
			Impact: "The customer changes an item of the order, is told 201, and gets the old one.",
			Cases:  []string{"conflict/nested-differs"},
			change: comparedAsJSON(func(_ int, value any) any {
				if list, isList := value.([]any); isList {
					return len(list)
				}
				return value
			}),
		}, {
			Name: "known-members-only", Description: "Only the members amount and reference are compared.",
			Impact: "The customer changes the currency, is told 201, and pays in the old one.",
			Cases:  []string{"conflict/nested-differs"},
			change: comparedAsJSON(func(depth int, value any) any {
				members, isObject := value.(map[string]any)
				if depth > 0 || !isObject {
					return value
				}
				return map[string]any{"amount": members["amount"], "reference": members["reference"]}
			}),
		},
	}
}

// detailBugs returns the bugs of a server that takes different values in a JSON body for equal. Cases are the test cases that must find the bug.
func detailBugs() []Bug {
	return []Bug{
		{
			Name: "numbers-rounded", Description: "Numbers are compared as floating point: beyond 2^53 neighbours are the same.",
			Impact: "A change of an account number or a large amount is answered with the old one.",
			Cases:  []string{"conflict/large-numbers"},
			change: comparedAsJSON(func(_ int, value any) any {
				if number, isNumber := value.(json.Number); isNumber {
					rounded, _ := number.Float64() // out of range is infinite, which is compared too
					return strconv.FormatFloat(rounded, 'g', -1, 64)
				}
				return value
			}),
		}, {
			Name: "strings-folded", Description: "Strings are compared without regard to case and spaces at their ends.",
			Impact: "A correction of a name is answered with the misspelt one.",
			Cases:  []string{"conflict/string-case"},
			change: comparedAsJSON(func(_ int, value any) any {
				if text, isText := value.(string); isText {
					return strings.ToLower(strings.TrimSpace(text))
				}
				return value
			}),
		},
	}
}

// comparedAs returns a mutation of the mock: it compares the result of change in the place of a request's body.
func comparedAs(change func(body string) string) mutation {
	return mutation{Print: func(_ *http.Request, parts []string) []string {
		last := len(parts) - 1
		parts[last] = change(parts[last])
		return parts
	}}
}

// comparedAsJSON returns a mutation of the mock, a deliberate bug: of a JSON body it compares each value after change has replaced it, outer values
// first; depth is 0 for the whole body, and 1 for its members or elements. Any other body is compared as it is.
func comparedAsJSON(change func(depth int, value any) any) mutation {
	return comparedAs(func(body string) string {
		var value any
		decoder := json.NewDecoder(bytes.NewReader([]byte(body)))
		decoder.UseNumber()
		if decoder.Decode(&value) != nil {
			return body
		}
		text, err := json.Marshal(changed(0, value, change))
		if err != nil {
			return body
		}
		return string(text)
	})
}

// changed returns a JSON value with each node replaced by change(depth, node), outer nodes first; the depth of the
// whole value is 0. It changes value in place.
func changed(depth int, value any, change func(int, any) any) any {
	value = change(depth, value)
	switch node := value.(type) {
	case map[string]any:
		for name, member := range node {
			node[name] = changed(depth+1, member, change)
		}
	case []any:
		for i, element := range node {
			node[i] = changed(depth+1, element, change)
		}
	}
	return value
}
