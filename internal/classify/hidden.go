package classify

import (
	"encoding/json"
	"slices"

	"github.com/oncehttp/oncehttp/internal/jsonpointer"
	"github.com/oncehttp/oncehttp/profile"
)

// byVerdicts returns the verdict on a 2xx of an API that says in the body whether the operation succeeded. The profile's verdicts tell how to read
// the body. If none of them fits, a person must look.
func (r *reader) byVerdicts(p *profile.Profile) Verdict {
	switch r.answer.proof(p.Verdicts) {
	case profile.ProvesSucceeded:
		return Verdict{Kind: KindFinal}
	case profile.ProvesRefused:
		return Verdict{Kind: KindFinal, Refused: true}
	case profile.ProvesMismatch:
		return Verdict{Kind: KindMismatch, Hold: r.facts.InDoubt}
	case profile.ProvesInProgress:
		return Verdict{Kind: KindInFlight, Again: true}
	}
	return Verdict{Kind: KindUnknown, Hold: true, Reason: ReasonUnclear}
}

// proof returns the outcome that the body proves by these verdicts; of several the most cautious one. It is unknown if the body proves none, was not
// read whole, or is not one JSON value.
func (c *content) proof(list []profile.Verdict) profile.Proof {
	if !c.Whole || c.Unread || !json.Valid(c.Body) {
		return profile.ProvesUnknown
	}
	found := map[profile.Proof]bool{}
	for _, v := range list {
		if c.meets(&v) {
			found[v.Proves] = true
		}
	}
	for _, proof := range []profile.Proof{profile.ProvesUnknown, profile.ProvesInProgress, profile.ProvesMismatch, profile.ProvesRefused, profile.ProvesSucceeded} {
		if found[proof] {
			return proof
		}
	}
	return profile.ProvesUnknown
}

// meets reports whether the body fits a verdict of the profile: it has exactly one value at the verdict's pointer, and this is one of the verdict's values. A
// verdict without values takes any but null. An empty list is the value "[]", an empty object "{}"; other lists and objects are no value.
func (c *content) meets(v *profile.Verdict) bool {
	if len(jsonpointer.Texts(c.Body, v.Pointer)) != 1 {
		return false
	}
	switch value := jsonpointer.Value(c.json(), v.Pointer).(type) {
	case nil:
		return slices.Contains(v.Equals, "null")
	case []any:
		return len(v.Equals) == 0 || len(value) == 0 && slices.Contains(v.Equals, "[]")
	case map[string]any:
		return len(v.Equals) == 0 || len(value) == 0 && slices.Contains(v.Equals, "{}")
	}
	text, _ := jsonpointer.Text(c.json(), v.Pointer)
	return len(v.Equals) == 0 || slices.Contains(v.Equals, text)
}

// hasNoData reports whether the data of a GraphQL response is missing, null, or an object whose members are all null: the field of a mutation that failed is
// null there if its type allows it (GraphQL specification, section 6.4.4).
func hasNoData(answer any) bool {
	data := jsonpointer.Value(answer, "/data")
	members, isObject := data.(map[string]any)
	for _, value := range members {
		if value != nil {
			return false
		}
	}
	return data == nil || isObject
}

// graphQLFailed reports whether the answer to a GraphQL request has errors and no data (GraphQL specification, section 7.1). If the request
// only may be one, the answer must have nothing that the specification does not know.
func (r *reader) graphQLFailed() bool {
	if !r.facts.GraphQL && !r.facts.MayBeGraphQL || !r.answer.Whole {
		return false
	}
	errors, _ := jsonpointer.Value(r.answer.json(), "/errors").([]any)
	return len(errors) > 0 && hasNoData(r.answer.json()) && (r.facts.GraphQL || graphQLOnly(r.answer.json(), errors))
}

// graphQLOnly reports whether an answer is a GraphQL response with errors: it has no other members than GraphQL's, and each of its errors has a
// message.
func graphQLOnly(answer any, errors []any) bool {
	members, _ := answer.(map[string]any)
	for name := range members {
		if name != "errors" && name != "data" && name != "extensions" {
			return false
		}
	}
	return !slices.ContainsFunc(errors, func(e any) bool {
		members, _ := e.(map[string]any)
		_, is := members["message"].(string)
		return !is
	})
}
