package acts

// AnswerReader holds the means of a client to read a recorded answer for which an operation is held: the client that got the answer could not read it.
type AnswerReader struct {
	Knows bool // it knows the profile of the record, and that profile has the facts of the record
	Need  Need // its first unmet need of the operation
	Whole bool // the answer has each value that those facts read
}

// Reads reports whether the client may end the hold by what it reads in the answer. Without it the operation stays held. (Invariant 42.)
func (r AnswerReader) Reads() bool { return r.Knows && r.Need == Nothing && r.Whole }
