package persist

import "fmt"

// KeptField is one value of a request's body.
type KeptField struct {
	// Pointer is the place of the value: a JSON pointer (RFC 6901), never empty. Of a form, /a/b is the field a[b].
	Pointer string
	// Value is the text of a string, number or boolean as the request spells it; numbers are not rounded.
	Value string
	// Omitted: the request's value there is not kept. It was too long or of another kind, or was not looked for
	// in a very large body. Value is empty.
	Omitted bool
}

// The bounds of Record.KeptFields.
const (
	// KeptFieldsMax is how many values of its request a record keeps.
	KeptFieldsMax = 8
	// KeptFieldsBytesMax is how long their pointers and values are in all.
	KeptFieldsBytesMax = 256
)

// The bounds of Record.DropAnswer.
const (
	// DropAnswerMax is how many members of an answer a record leaves out.
	DropAnswerMax = 32
	// DropAnswerBytesMax is how long their pointers are in all.
	DropAnswerBytesMax = 2048
)

// validateDropAnswer returns ErrInvalid if DropAnswer, the pointers of the members that are left out of recorded answers, is past its bounds.
func (r *Record) validateDropAnswer() error {
	size := 0
	for _, pointer := range r.DropAnswer {
		size += len(pointer)
	}
	if len(r.DropAnswer) > DropAnswerMax || size > DropAnswerBytesMax {
		return fmt.Errorf("%w: %d members of %d bytes to leave out of an answer, want at most %d, of %d bytes in all", ErrInvalid, len(r.DropAnswer), size, DropAnswerMax, DropAnswerBytesMax)
	}
	return nil
}

// validateKeptFields returns ErrInvalid if one of KeptFields, the values of the body kept longer than the body, has no pointer, or has a value
// although it says that its value was left out. It checks the bounds, too.
func (r *Record) validateKeptFields() error {
	size := 0
	for _, f := range r.KeptFields {
		if f.Pointer == "" || f.Omitted && f.Value != "" {
			return fmt.Errorf("%w: a kept field without a pointer, or an omitted one with a value", ErrInvalid)
		}
		size += len(f.Pointer) + len(f.Value)
	}
	if len(r.KeptFields) > KeptFieldsMax || size > KeptFieldsBytesMax {
		return fmt.Errorf("%w: %d kept fields of %d bytes, want at most %d of %d",
			ErrInvalid, len(r.KeptFields), size, KeptFieldsMax, KeptFieldsBytesMax)
	}
	return nil
}
