package keylayer

import (
	"encoding/json"
	"slices"

	"github.com/oncehttp/oncehttp/profile"
)

// Proving returns a copy of a 2xx with a body that proves the outcome, by the profile's verdict of that kind. Any other
// answer, a body that is no JSON object, and one with a value at that place are returned as they are.
func Proving(p *profile.Profile, a *Answer, proof profile.Proof) *Answer {
	var document any
	if a.Status >= 300 || json.Unmarshal(a.Body, &document) != nil {
		return a
	}
	for _, v := range p.Verdicts {
		if v.Proves != proof {
			continue
		}
		if _, present := Lookup(a.Body, v.Pointer); present {
			return a // the handler's own value
		}
		proving := a.Clone()
		proving.Body = JSONAnswer(a.Status, "", plant(document, pointerTokens(v.Pointer), provingValue(v.Equals))).Body
		return proving
	}
	return a
}

// provingValue returns the first of the texts as a JSON value, as a string if it is none; true if there are no texts.
func provingValue(equals []string) any {
	text := FirstOr(equals, "true")
	if json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}
	return text
}

// RefusedInBody reports whether the answer's body proves a refusal by one of the profile's verdicts. It does not look
// at the status.
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

// inBody returns a 200 whose body says the outcome, as the profile's API does; nil if the profile has no way to say it.
func inBody(p *profile.Profile, proof profile.Proof) *Answer {
	bare := JSONAnswer(200, JSONType, map[string]any{})
	if a := Proving(p, bare, proof); a != bare {
		return a
	}
	return nil
}
