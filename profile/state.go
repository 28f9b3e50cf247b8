package profile

import "strings"

// State says how far a profile can be relied on.
type State string

// The states.
const (
	StateRefused  State = "refused"  // where the key travels is not known: no client takes the profile
	StatePartial  State = "partial"  // it can be used; a source lacks for where keys count, or for what a repeat of a success is answered
	StateReady    State = "ready"    // a repeat takes no effect twice where keys count; what else is assumed says Assumptions
	StateComplete State = "complete" // ready, and nothing is Unknown
)

// State is how far the profile can be relied on, by what a primary source or an official page states. An API that takes no key is
// ready: each request goes out once, and is held where that leaves a doubt. That of the draft, which is no API, is partial.
func (p *Profile) State() State {
	switch {
	case p.Carrier.Place == Nowhere:
		return StateReady
	case p.Carrier.Name == "":
		return StateRefused
	case strings.HasPrefix(p.Name, defaultName) || len(p.NotReady()) > 0:
		return StatePartial
	case p.Complete():
		return StateComplete
	}
	return StateReady
}

// NotReady lists what a profile lacks to be ready, by the names in files: carrier, endpoints (or methods), and stored.success (or
// already_done).
func (p *Profile) NotReady() []string {
	if p.Carrier.Place == Nowhere {
		return nil
	}
	var lacks []string
	for _, need := range []struct {
		name string
		met  bool
	}{
		{"carrier", p.Carrier.Name != "" && p.sure("Carrier")},
		{"endpoints", len(p.Endpoints) > 0 && p.sure("Endpoints") || len(p.Methods) > 0 && p.sure("Methods")},
		{"stored.success", p.Stored.Success == Yes && p.sure("Stored") || len(p.AlreadyDone) > 0 && p.sure("AlreadyDone")},
	} {
		if !need.met {
			lacks = append(lacks, need.name)
		}
	}
	return lacks
}

// sure reports whether a primary source or an official page states a field of the profile.
func (p *Profile) sure(field string) bool {
	c := p.Sources[field].Confidence
	return c == Primary || c == Excerpt
}
