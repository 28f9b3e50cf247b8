package profile

import (
	"maps"
	"slices"
)

// cloned returns a deep copy of p: see Profile.Clone.
func cloned(p *Profile) *Profile {
	if p == nil {
		return nil
	}
	c := *p
	c.Token, c.Lookup, c.Reference, c.Cancel = copied(p.Token), copied(p.Lookup), copied(p.Reference), copied(p.Cancel)
	if c.Reference != nil {
		c.Reference.Same = slices.Clone(p.Reference.Same)
	}
	c.Body.Formats = slices.Clone(p.Body.Formats)
	c.NotActed = NotActed{Again: slices.Clone(p.NotActed.Again), Stop: slices.Clone(p.NotActed.Stop)}
	c.Own.Bare = slices.Clone(p.Own.Bare)
	for _, texts := range []*[]string{&c.Methods, &c.AccountHeaders, &c.Fingerprint, &c.Notes} {
		*texts = slices.Clone(*texts)
	}
	for _, list := range []*[]Matcher{
		&c.AlreadyDone, &c.Duplicate, &c.Mismatch, &c.Poisoned, &c.BusinessConflict, &c.InProgress, &c.Unclear, &c.Replay, &c.Stored.Client,
	} {
		*list = clonedMatchers(*list)
	}
	c.Endpoints = slices.Clone(p.Endpoints)
	c.Verdicts = slices.Clone(p.Verdicts)
	for i, v := range c.Verdicts {
		c.Verdicts[i].At, c.Verdicts[i].Equals = slices.Clone(v.At), slices.Clone(v.Equals)
	}
	c.Webhook = p.Webhook.clone()
	c.RetryAfter = slices.Clone(p.RetryAfter)
	c.Sources = maps.Clone(p.Sources)
	c.Doubted = slices.Clone(p.Doubted)
	return &c
}

// copied returns a pointer to a copy of the value at v; nil for nil.
func copied[T any](v *T) *T {
	if v == nil {
		return nil
	}
	c := *v
	return &c
}

// clonedMatchers copies a list of matchers, and the lists in each.
func clonedMatchers(list []Matcher) []Matcher {
	list = slices.Clone(list)
	for i, m := range list {
		list[i].Status, list[i].Has, list[i].Equals = slices.Clone(m.Status), slices.Clone(m.Has), slices.Clone(m.Equals)
	}
	return list
}

// differences returns the names of the facts with different values in p and other, and "name" and "version". Facts are the settings that programs read; texts
// for people (forPeople) are not compared.
func differences(p, other *Profile) []string {
	var names []string
	if p.Name != other.Name {
		names = append(names, "name")
	}
	if p.Version != other.Version {
		names = append(names, "version")
	}
	for _, f := range facts() {
		if !f.forPeople && f.compared(p) != f.compared(other) {
			names = append(names, f.name)
		}
	}
	return names
}
