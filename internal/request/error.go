package request

// Trouble says in which way a request cannot be taken.
type Trouble uint8

// The troubles.
const (
	// Invalid: the request cannot be recorded and sent again, or its body cannot be read.
	Invalid Trouble = iota
	// InvalidKey: it has no key, more than one, or one that the profile does not take.
	InvalidKey
	// BodyTooLarge: the body is over Reader.MaxBodyBytes.
	BodyTooLarge
	// HeaderTooLarge: target and headers together are over Reader.MaxHeaderBytes.
	HeaderTooLarge
	// Ended: the request's context ended while its body was read. The cause is the context's.
	Ended
)

// Error is why a request was not taken. Nothing was recorded or sent.
type Error struct {
	// Trouble is the kind of error, which the client gives a sentinel.
	Trouble Trouble
	// Cause says what is wrong; never nil.
	Cause error
}

// Error is the cause's text, which holds no body, credential or query string.
func (e *Error) Error() string { return e.Cause.Error() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// UnreadKey is NewKey's error where the body that names the key could not be read: an operation may stand under that key.
type UnreadKey struct{ Cause error }

// Error is the cause's text.
func (e UnreadKey) Error() string { return e.Cause.Error() }

// Unwrap returns the cause.
func (e UnreadKey) Unwrap() error { return e.Cause }
