package keylayer

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/oncehttp/oncehttp/profile"
)

// VerdictsFor returns the profile with only those verdicts (places in a body that tell success from refusal) that hold for the request's endpoint. A
// verdict without endpoints (At) holds for all. The endpoint may lie below another path, as behind a gateway.
func VerdictsFor(p *profile.Profile, r *http.Request) *profile.Profile {
	own := *p
	own.Verdicts = slices.DeleteFunc(slices.Clone(p.Verdicts), func(v profile.Verdict) bool {
		return len(v.At) > 0 && !slices.ContainsFunc(v.At, func(e profile.Endpoint) bool { return e.Method == r.Method && meetsBelow(e.Path, r.URL.EscapedPath()) })
	})
	return &own
}

// meetsBelow reports whether the end of an escaped path meets an endpoint's form: segments in front of it, as a gateway adds them, are left out.
func meetsBelow(form, escapedPath string) bool {
	surplus := strings.Count(escapedPath, "/") - strings.Count(form, "/")
	for ; surplus > 0; surplus-- {
		_, rest, _ := strings.Cut(escapedPath[1:], "/")
		escapedPath = "/" + rest
	}
	return meets(form, escapedPath)
}

// Proving returns a copy of a 2xx with a value in its body that proves the outcome to clients, such as success, by the profile's verdict of that
// kind. Any other answer, a body that is no JSON object, and one that proves it already are returned as they are. Only the first verdict of that kind
// is looked at.
func Proving(p *profile.Profile, a *Answer, proof profile.Proof) *Answer {
	var document any
	if a.Status >= 300 || json.Unmarshal(a.Body, &document) != nil {
		return a
	}
	for _, v := range p.Verdicts {
		if v.Proves != proof {
			continue
		}
		if text, _ := LookupText(a.Body, v.Pointer); text != "" && (len(v.Equals) == 0 || slices.Contains(v.Equals, text)) {
			return a
		}
		proving := a.Clone()
		proving.Body = JSONAnswer(a.Status, "", plant(document, pointerTokens(v.Pointer), provingValue(v.Equals))).Body
		return proving
	}
	return a
}

// provingValue returns the JSON value put into an answer so that the profile's verdict fits it: the first text of equals, as a string if it is no
// JSON; true if equals is empty.
func provingValue(equals []string) any {
	text := FirstOr(equals, "true")
	if json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}
	return text
}

// RefusedInBody reports whether the answer's body proves a refusal by one of the profile's verdicts (values at certain places): some APIs refuse with
// a 200. It does not look at the status.
func RefusedInBody(p *profile.Profile, a *Answer) bool {
	for _, v := range p.Verdicts {
		value, found := Lookup(a.Body, v.Pointer)
		text, _ := LookupText(a.Body, v.Pointer)
		if v.Proves == profile.ProvesRefused && found && value != nil && (len(v.Equals) == 0 || slices.Contains(v.Equals, text)) {
			return true
		}
	}
	return false
}

// inBody returns a 200 whose body proves the outcome of this kind (such as "in progress"), as the API of the profile does; nil if the profile has no
// such verdict for every endpoint.
func inBody(p *profile.Profile, proof profile.Proof) *Answer {
	everywhere := *p
	everywhere.Verdicts = slices.DeleteFunc(slices.Clone(p.Verdicts), func(v profile.Verdict) bool { return len(v.At) > 0 })
	bare := JSONAnswer(200, JSONType, map[string]any{})
	if a := Proving(&everywhere, bare, proof); a != bare {
		return a
	}
	return nil
}
