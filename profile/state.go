package profile

import (
	"strings"
	"time"
)

// State is the reliability of a profile.
type State string

// The states.
const (
	StateRefused  State = "refused"  // the place of the key is unknown: no client takes the profile
	StatePartial  State = "partial"  // usable, but no sure source states the endpoints with keys, or the answer to a repeat of a success; see NotReady
	StateReady    State = "ready"    // a repeat at an endpoint with keys has no second effect; see Assumptions for the rest
	StateComplete State = "complete" // ready, and nothing is Unknown
)

// State returns the reliability of the profile, by the facts of primary sources and official pages: refused if the place of the key is unknown, partial if NotReady
// names a fact, complete if nothing is Unknown, else ready. An API without keys is ready: each request is sent once, and held in case of doubt. The draft's profile,
// of no API, is partial.
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

// NotReady returns the facts that a profile lacks to be ready, by the names in files: carrier, endpoints (or methods), and stored.success (or already_done). A
// fact counts only with a primary source or an official page (sure). Without keys nothing is lacking.
func (p *Profile) NotReady() []string {
	if p.Carrier.Place == Nowhere {
		return nil
	}
	from := sources(p.Sources)
	var lacks []string
	for _, need := range []struct {
		name string
		met  bool
	}{
		{"carrier", p.Carrier.Name != "" && from.sure("Carrier")},
		{"endpoints", len(p.Endpoints) > 0 && from.sure("Endpoints") || len(p.Methods) > 0 && from.sure("Methods")},
		{"stored.success", p.Stored.Success == Yes && from.sure("Stored") || len(p.AlreadyDone) > 0 && from.sure("AlreadyDone")},
	} {
		if !need.met {
			lacks = append(lacks, need.name)
		}
	}
	return lacks
}

// Unknown returns the gaps that keep a profile from being complete, by the names in files: carrier, window, in_progress, mismatch and stored.server_error (is
// a 5xx kept under the key), as far as no primary or excerpted source states them. An API that answers every repeat with already done needs no mismatch, since
// the key of another request gets the same answer. An API without keys has no gaps.
func (p *Profile) Unknown() []string {
	if p.Carrier.Place == Nowhere {
		return nil
	}
	from := sources(p.Sources)
	var unknown []string
	for _, need := range []struct {
		name  string
		known bool
	}{
		{"carrier", p.Carrier.Name != "" && from.sure("Carrier")},
		{"window", p.Window.Published == Yes && from.sure("Window")},
		{"in_progress", len(p.InProgress) > 0 && from.sure("InProgress")},
		{"mismatch", len(p.Mismatch) > 0 && from.sure("Mismatch") || len(p.AlreadyDone) > 0 && from.sure("AlreadyDone")},
		{"stored.server_error", p.Stored.ServerError != Unknown && from.sure("Stored")},
	} {
		if !need.known {
			unknown = append(unknown, need.name)
		}
	}
	return unknown
}

// Complete reports whether the API takes keys, the profile is ready, and nothing is Unknown.
func (p *Profile) Complete() bool {
	return p.Carrier.Place != Nowhere && len(p.Unknown()) == 0 && len(p.NotReady()) == 0
}

// OldFacts returns the names of the facts whose sources are old at this time, and should be read again; see [Source.Old].
func (p *Profile) OldFacts(at time.Time) []string {
	var names []string
	for _, s := range p.Statements() {
		if s.Source.Old(at) {
			names = append(names, s.Name)
		}
	}
	return names
}

// Statements returns all facts of the profile in reading order: those that count, those that are Doubted, and the
// unknown ones with an empty Value. The caller owns the list.
func (p *Profile) Statements() []Statement {
	var list []Statement
	for _, f := range facts() {
		if doubted(p.Doubted).has(f.name) {
			for _, s := range p.Doubted {
				if s.Name == f.name {
					list = append(list, s)
				}
			}
			continue
		}
		s := Statement{Name: f.name}
		if source, known := p.Sources[f.field]; known {
			written := stated(p, f.field) // Unclear without the matchers that doubted lists have added
			s.Value, s.Text, s.Source = f.text(written), words(f.part(written)), source
		}
		list = append(list, s)
	}
	return list
}
