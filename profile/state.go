package profile

import "strings"

// State is the reliability of a profile.
type State string

// The states.
const (
	StateRefused  State = "refused"  // the place of the key is unknown: no client takes the profile
	StatePartial  State = "partial"  // usable, but no sure source states the endpoints with keys, or the answer to a repeat of a success; see NotReady
	StateReady    State = "ready"    // a repeat at an endpoint with keys has no second effect; see Assumptions for the rest
	StateComplete State = "complete" // ready, and nothing is Unknown
)

// State returns the reliability of the profile, by the facts of primary sources and official pages. An API without keys is
// ready: each request is sent once, and held in case of doubt. The draft's profile, of no API, is partial.
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

// NotReady returns the facts that a profile lacks to be ready, by the names in files: carrier, endpoints (or methods), and
// stored.success (or already_done).
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
