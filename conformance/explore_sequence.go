package conformance

import (
	"slices"
)

// sequence is a plan of requests for one operation: the first request, and later ones by their
// relation to it. It names no key, so that it can be sent again under fresh ones. Nothing
// changes it after its draw; clone makes a copy to change.
type sequence struct {
	slow  bool   // the operation is slow, so that others meet it at work
	fails string // the relation by which its handler fails; "": it does not
	size  string // a relation of large bodies; "": none
	acts  []move // one at least
	only  string // relations returns this id alone; "": those of the acts
}

// move is one act of a sequence: a request, or several copies of it. The zero value is a plain
// repeat.
type move struct {
	change  string   // the relation in which it differs from the first request; "": none
	forms   []string // relations of its form on the wire
	ends    string   // "leaves", "reset" or "cut": how its client ends; "": it reads the answer
	copies  int      // requests at once; 0 is one
	beside  bool     // sent while the act before it is at work
	part    float64  // with beside: the part of Options.Hold to wait before it
	pause   bool     // sent after a pause
	others  int      // operations with other keys before it
	failing bool     // sent while another operation is at work, which then fails
}

// plain reports whether this act of a test sequence is a single repeat of the first request: nothing differs from it, and nothing else happens at the
// same time.
func (a *move) plain() bool {
	return a.change == "" && len(a.forms) == 0 && a.ends == "" && a.copies < 2 && !a.beside && !a.pause && a.others == 0 && !a.failing
}

// clone returns a copy that shares nothing with s.
func (s *sequence) clone() *sequence {
	dup := *s
	dup.acts = slices.Clone(s.acts)
	for i := range dup.acts {
		dup.acts[i].forms = slices.Clone(dup.acts[i].forms)
	}
	return &dup
}

// relations returns the ids of all relations that occur in the sequence, each once, in the order given. A relation is a kind of difference between
// requests, or a way of sending them. Acts that are beside another overlap with it if the operation is slow, else they come at once. met may hold "",
// which is no relation.
func (s *sequence) relations(order []string) []string {
	if s.only != "" {
		return []string{s.only}
	}
	met := map[string]bool{s.fails: true, s.size: true}
	plain := 0
	for i, a := range s.acts {
		met[a.change], met[a.ends] = true, true
		for _, form := range a.forms {
			met[form] = true
		}
		met["at-once"] = met["at-once"] || a.copies > 1 || a.beside && !s.slow
		met["overlap"] = met["overlap"] || a.beside && s.slow
		met["pause"] = met["pause"] || a.pause
		met["others"] = met["others"] || a.others > 0
		met["others-fail"] = met["others-fail"] || a.failing
		if i > 0 && a.plain() {
			plain++
		}
	}
	met["repeat"] = plain > 0
	var ids []string
	for _, id := range order {
		if met[id] {
			ids = append(ids, id)
		}
	}
	return ids
}
