package persist

import "errors"

// The verdicts. Every error of oncehttp about one operation matches exactly one of them, and so does every error of
// Record.CheckRepeat. Package oncehttp has them under the same names.
var (
	// ErrNoEffect: the operation of the key did not happen, and nothing is pending.
	ErrNoEffect = errors.New("no effect")
	// ErrFinal: the operation was decided before, and this call cannot have its answer.
	ErrFinal = errors.New("decided before")
	// ErrOutcomeUnknown: an effect is possible, or is intended and pending.
	ErrOutcomeUnknown = errors.New("outcome unknown")
)
