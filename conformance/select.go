package conformance

import (
	"slices"
	"strings"
)

// Select lists the cases that these options would run, in the order of the book, and sends
// nothing. Some of them may be skipped later, if the target lacks a need.
func Select(o Options) ([]Case, error) { return o.withDefaults().selected() }

// selected returns the cases that Run, Skip and Quick choose, never none. A pattern without a
// matching case is an error: a typing mistake must not look like a clean run. o must have its
// defaults.
func (o Options) selected() ([]Case, error) {
	all := o.book()
	for _, list := range []struct {
		option   string
		patterns []string
	}{{"Run", o.Run}, {"Skip", o.Skip}} {
		for _, pattern := range list.patterns {
			if !slices.ContainsFunc(all, func(c Case) bool { return globMatch(pattern, c.ID) }) {
				return nil, usage(list.option, "%q matches no case", pattern)
			}
		}
	}
	var chosen []Case
	for _, c := range all {
		switch {
		case len(o.Run) > 0 && !matchAny(o.Run, c.ID), matchAny(o.Skip, c.ID):
		case o.Quick && !o.Explore && !o.Volume && !quick(&c):
		default:
			chosen = append(chosen, c)
		}
	}
	if len(chosen) == 0 {
		return nil, usage("Run", "no case is left to run")
	}
	return chosen, nil
}

// book returns all cases among which these options choose: the usual ones, those of the search, or those of volume.
func (o Options) book() []Case {
	switch {
	case o.Explore:
		return Relations()
	case o.Volume:
		return Volumes()
	}
	return Cases()
}

// quick reports whether a case is a part of Options.Quick, a short run: the basic rules without long waits.
func quick(c *Case) bool {
	chosen := slices.Contains([]string{"replay", "conflict", "scope"}, c.Group()) || c.ID == "inflight/once"
	return chosen && c.ID != "replay/after-a-pause"
}

// matchAny reports whether an id matches one of the patterns, where * stands for any characters.
func matchAny(patterns []string, id string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return globMatch(p, id) })
}

// globMatch reports whether id matches pattern. * and ** stand for any characters, none
// included.
func globMatch(pattern, id string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == id
	}
	rest, found := strings.CutPrefix(id, parts[0])
	if !found {
		return false
	}
	for _, part := range parts[1 : len(parts)-1] {
		i := strings.Index(rest, part)
		if i < 0 {
			return false
		}
		rest = rest[i+len(part):]
	}
	return strings.HasSuffix(rest, parts[len(parts)-1])
}
