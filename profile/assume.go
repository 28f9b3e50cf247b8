package profile

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Assumption is a fact that the client assumes for want of a source.
type Assumption struct {
	Name  string `json:"name"`            // of the fact in files, or of a part of it with a dot; see [Profile.Assume]
	Value string `json:"value,omitempty"` // the assumed value, if it is one short text; empty: see Text
	Text  string `json:"text"`            // for people
}

// String returns the name of the assumption, with its value if it has one, such as "key" or "window=1h".
func (a Assumption) String() string {
	if a.Value == "" {
		return a.Name
	}
	return a.Name + "=" + a.Value
}

// Assumptions returns the assumptions about an API with keys, in reading order: what is taken for granted where the profile does not say it, or only its
// author does (unsure); an API without keys has none. None of them is promised; put a source with another statement into the profile.
func (p *Profile) Assumptions() []Assumption {
	if p.Carrier.Place == Nowhere {
		return nil
	}
	from := sources(p.Sources)
	var list []Assumption
	for _, a := range []struct {
		name, text string
		assumed    bool // no source states it
	}{
		{"encoding", "a key is sent as it is", p.Carrier.Place == Header && from.unsure("Encoding")},
		{"key", assumedKey(p.Key), from.unsure("Key")},
		{"methods", "keys count on every method that is sent with one", len(p.Methods) == 0 && len(p.Endpoints) == 0},
		{"window", fmt.Sprintf("a key counts for %v after the first send, and then nothing is sent again; an API that forgets it earlier acts twice", spanText(p.Window.Floor)), p.Window.Published != Yes},
		{"mismatch", "no answer says that a key is another request's", len(p.Mismatch) == 0 && len(p.AlreadyDone) == 0},
		{"in_progress", "a 409 that nothing else names means that the first request is still being worked on", len(p.InProgress) == 0},
		{"stored.success", "a repeat of a success is answered with a success", p.Stored.Success == Unknown && len(p.AlreadyDone) == 0},
		{"stored.server_error", "a 5xx is asked for again with the same key, an equal 500 at most twice in a run", p.Stored.ServerError == Unknown},
	} {
		if !a.assumed {
			continue
		}
		assumption := Assumption{Name: a.name, Text: a.text}
		if a.name == "window" {
			assumption.Value = spanText(p.Window.Floor).String()
		}
		list = append(list, assumption)
	}
	return list
}

// Assume returns a copy of p with the caller's value in place of the assumption of this name, one of
// [Profile.Assumptions]. It refuses a fact with a source. The value is JSON as in a profile file, or one of these:
//
//   - window: a time, such as 30m or 24h; at most [WindowCap]. It may be longer only if no source states one.
//   - encoding: raw or sf-string.
//   - key: the greatest length in bytes, uuid, or uuidv4.
//   - methods: methods with commas between them, such as POST,PATCH.
//   - mismatch, in_progress: statuses with commas between them, such as 409,423.
//   - stored.success, stored.server_error: yes or no.
//
// The name of the profile stays. An operation begun with other facts keeps its own window, key and carrier; a 4xx explained
// only by the caller's value does not settle it. An error is one line and names the assumption.
func (p *Profile) Assume(name, value string) (*Profile, error) {
	var names []string
	for _, a := range p.Assumptions() {
		names = append(names, a.Name)
	}
	if !slices.Contains(names, name) {
		return nil, fmt.Errorf("profile: %q: profile %q assumes no such thing; it assumes %s", name, p.Name, orNothing(names))
	}
	c := p.Clone()
	if c.Sources == nil {
		c.Sources = map[string]Source{}
	}
	if err := assume(c, name, value); err != nil {
		return nil, fmt.Errorf("profile: %s=%s: %w", name, value, err)
	}
	if c.Window.Floor > p.Window.Floor && !sources(p.Sources).unsure("Window") {
		return nil, fmt.Errorf("profile: %s=%s: a source says %v; want at most that", name, value, spanText(p.Window.Floor))
	}
	if err := c.Check(); err != nil {
		return nil, fmt.Errorf("profile: %s=%s: %w", name, value, err)
	}
	return c, nil
}

// usualKeyMax bounds the length of a usual key, in bytes, at an API without a known key rule.
const usualKeyMax = 64

// UnusualKey reports whether the API of a profile without a known key rule may refuse the key: it has more than 64 bytes, or other
// characters than letters, digits and -_.:=%~. It is false with a known rule, without keys, with tokens, and for a nil profile.
func UnusualKey(p *Profile, key string) bool {
	return p != nil && p.Key == (KeyRule{}) && p.Carrier.Place != Nowhere && p.Token == nil && (len(key) > usualKeyMax || strings.Trim(key, lower+upper+digits+"-_.:=%~") != "")
}

// orNothing joins names with commas; without any it returns "nothing".
func orNothing(names []string) string {
	if len(names) == 0 {
		return "nothing"
	}
	return strings.Join(names, ", ")
}

// assume sets the value of an assumption in p; it then counts as the caller's, and no longer as a source's. name is one of Assumptions, and
// Sources is not nil. Statements of weak sources on the same fact (Doubted) are dropped, but for those with matchers in Unclear (held counts them): these
// stay there. Of stored.success and stored.server_error only the value is set. After an error p is not to be used.
func assume(p *Profile, name, value string) error {
	if part, found := strings.CutPrefix(name, "stored."); found {
		return assumeStored(&p.Stored, part, value)
	}
	text := assumedJSON(name, value)
	i := slices.IndexFunc(facts(), func(f fact) bool { return f.name == name }) // every other assumption is a fact
	f := facts()[i]
	switch field := f.part(p).(type) { // decoding would merge with the old value
	case *KeyRule:
		*field = KeyRule{}
	case *[]Matcher:
		*field = nil
	}
	var decoded any
	if err := json.Unmarshal([]byte(text), &decoded); err != nil {
		return errors.New("want a value as in a profile file, or a short form of it")
	}
	if err := into(decoded, f.part(p)); err != nil {
		return err
	}
	delete(p.Sources, f.field) // the caller has set it; as a source that counts only where a file needs none (assumed)
	if f.assumed {
		p.Sources[f.field] = Source{Ref: "the caller", Date: time.Now().UTC().Format(time.DateOnly), Confidence: Assumed}
	}
	p.Doubted = slices.DeleteFunc(p.Doubted, func(s Statement) bool { return s.Name == name && s.held == 0 })
	if err := f.check(p); err != nil {
		return err
	}
	return checkTogether(p)
}

// assumeStored sets the fact that the API stores its answers of successes (part "success") or of server errors (any other part) under the key. Unknown is no
// value for an assumption.
func assumeStored(stored *Stored, part, value string) error {
	var fact Fact
	if err := fact.UnmarshalText([]byte(value)); err != nil || fact == Unknown {
		return errors.New("want yes or no")
	}
	if part == "success" {
		stored.Success = fact
	} else {
		stored.ServerError = fact
	}
	return nil
}

// assumedJSON returns the value of an assumed fact as JSON. A value in JSON is returned as it is; a short form, as [Profile.Assume] describes it, is
// expanded. The result of a wrong short form may not be JSON.
func assumedJSON(name, value string) string {
	list := func(quote bool) string {
		parts := strings.Split(value, ",")
		for i, part := range parts {
			if parts[i] = strings.TrimSpace(part); quote {
				parts[i] = quoted(parts[i])
			}
		}
		return "[" + strings.Join(parts, ",") + "]"
	}
	_, notNumber := strconv.Atoi(value)
	switch {
	case strings.HasPrefix(value, "{"), strings.HasPrefix(value, "["), strings.HasPrefix(value, `"`):
		return value
	case name == "window":
		return `{"floor":` + quoted(value) + `,"published":"no"}`
	case name == "encoding":
		return quoted(value)
	case name == "methods":
		return list(true)
	case name == "key" && notNumber == nil:
		return `{"max_bytes":` + value + `}`
	case name == "key":
		return `{"format":` + quoted(value) + `}`
	}
	return `[{"status":` + list(false) + `}]` // of mismatch and in_progress: a matcher by statuses
}

// assumedKey returns the text of the assumption "key", which says what keys the API takes although its documentation does not.
func assumedKey(rule KeyRule) string {
	if rule == (KeyRule{}) {
		return fmt.Sprintf("a key has at most %d letters, digits and -_.:=%%~; another one is sent, too, up to %d bytes, and is warned about once", usualKeyMax, keyBytesMax)
	}
	return "a key may have " + rule.String()
}
