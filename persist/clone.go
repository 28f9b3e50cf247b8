package persist

import "slices"

// Clone returns a deep copy: no slice, map or pointer is shared with r.
func (r *Record) Clone() Record {
	c := *r
	c.Header = r.Header.Clone()
	c.Body = slices.Clone(r.Body)
	c.Omitted = slices.Clone(r.Omitted)
	c.KeptFields = slices.Clone(r.KeptFields)
	c.DropAnswer = slices.Clone(r.DropAnswer)
	c.Credentials = slices.Clone(r.Credentials)
	c.Scopes = slices.Clone(r.Scopes)
	c.Fingerprint = slices.Clone(r.Fingerprint)
	c.History = slices.Clone(r.History)
	c.Acts = slices.Clone(r.Acts)
	if r.Evidence != nil {
		e := *r.Evidence
		c.Evidence = &e
	}
	if r.Answer != nil {
		a := *r.Answer
		a.Header = a.Header.Clone()
		a.Body = slices.Clone(a.Body)
		a.Dropped = slices.Clone(a.Dropped)
		c.Answer = &a
	}
	return c
}
