package profile

import (
	"fmt"
	"strings"
)

// Assumption is what the client goes by where no source says what the API does.
type Assumption struct {
	Name string `json:"name"` // of the fact in files
	Text string `json:"text"` // for people
}

// Assumptions lists what is assumed of an API that takes keys, in the order in which people read the facts. None of it is
// promised; a source that says otherwise belongs into the profile.
func (p *Profile) Assumptions() []Assumption {
	if p.Carrier.Place == Nowhere {
		return nil
	}
	var list []Assumption
	for _, a := range []struct {
		name, text string
		assumed    bool
	}{
		{"encoding", "a key is sent as it is", p.Carrier.Place == Header && p.unsure("Encoding")},
		{"key", p.assumedKey(), p.unsure("Key")},
		{"methods", "keys count on every method that is sent with one", len(p.Methods) == 0 && len(p.Endpoints) == 0},
		{"window", fmt.Sprintf("a key counts for %v after the first send, and then nothing is sent again; an API that forgets it earlier acts twice", spanText(p.Window.Floor)), p.Window.Published != Yes},
		{"mismatch", "no answer says that a key is another request's", len(p.Mismatch) == 0 && len(p.AlreadyDone) == 0},
		{"in_progress", "a 409 that nothing else names means that the first request is still being worked on", len(p.InProgress) == 0},
		{"stored", "a repeat of a success is answered with a success", p.Stored.Success == Unknown && len(p.AlreadyDone) == 0},
		{"stored", "a 5xx is asked for again with the same key, an equal 500 at most twice in a run", p.Stored.ServerError == Unknown},
	} {
		if a.assumed {
			list = append(list, Assumption{Name: a.name, Text: a.text})
		}
	}
	return list
}

// usualKeyMax is the length, in bytes, up to which a key is usual where an API does not say which keys it takes.
const usualKeyMax = 64

// UnusualKey reports whether an API of which it is not known which keys it takes may refuse a key: it has more than 64 bytes, or other characters
// than letters, digits and -_.:=%~.
func (p *Profile) UnusualKey(key string) bool {
	return p.Key == (KeyRule{}) && p.Carrier.Place != Nowhere && p.Token == nil && (len(key) > usualKeyMax || strings.Trim(key, lower+upper+digits+"-_.:=%~") != "")
}

// assumedKey says which keys are taken where nobody says so.
func (p *Profile) assumedKey() string {
	if p.Key == (KeyRule{}) {
		return fmt.Sprintf("a key has at most %d letters, digits and -_.:=%%~; another one is sent, too, up to %d bytes, and is warned about once", usualKeyMax, keyBytesMax)
	}
	return "a key may have " + p.Key.String()
}

// unsure reports whether a field of the profile is stated by nobody else than the file's author.
func (p *Profile) unsure(field string) bool {
	source, said := p.Sources[field]
	return !said || source.Confidence == Assumed
}
