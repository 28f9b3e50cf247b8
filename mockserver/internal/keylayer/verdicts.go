package keylayer

import (
	"encoding/json"
	"slices"

	"github.com/oncehttp/oncehttp/profile"
)

// Proving is an answer whose body proves an outcome, where the profile has a verdict of that kind and the status says
// nothing: a 2xx. Any other answer, and a body that is no JSON object, stay as they are.
func Proving(p *profile.Profile, a *Answer, proof profile.Proof) *Answer {
	var document any
	if a.Status >= 300 || json.Unmarshal(a.Body, &document) != nil {
		return a
	}
	for _, v := range p.Verdicts {
		if v.Proves != proof {
			continue
		}
		if _, said := Lookup(a.Body, v.Pointer); said {
			return a // the handler has said it
		}
		proving := a.Clone()
		proving.Body = JSONAnswer(a.Status, "", plant(document, pointerTokens(v.Pointer), provingValue(v.Equals))).Body
		return proving
	}
	return a
}

// provingValue is the value that the first of these texts stands for: a number, boolean, null, empty list or empty object as such, and
// any other text as a string.
func provingValue(equals []string) any {
	text := FirstOr(equals, "true")
	if json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}
	return text
}

// RefusedInBody reports whether the body of a 2xx says that nothing was done, by one of the profile's verdicts.
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

// inBody is a 200 whose body proves an outcome; nil where the profile has no such verdict.
func inBody(p *profile.Profile, proof profile.Proof) *Answer {
	bare := JSONAnswer(200, JSONType, map[string]any{})
	if a := Proving(p, bare, proof); a != bare {
		return a
	}
	return nil
}
