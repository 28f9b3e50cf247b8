package request

// Trouble is the kind of reason for refusing a request.
type Trouble uint8

// The troubles.
const (
	// Invalid: the request cannot be recorded and sent again, or its body cannot be read.
	Invalid Trouble = iota
	// InvalidKey: the request has no key, more than one, or one not allowed by the profile.
	InvalidKey
	// BodyTooLarge: the body is over Bodies.Max.
	BodyTooLarge
	// HeaderTooLarge: target and headers together are over Reader.MaxHeaderBytes.
	HeaderTooLarge
	// Ended: the request's context ended while its body was read. The cause is the context's.
	Ended
)

// Error is the reason for refusing a request. Nothing was recorded or sent.
type Error struct {
	// Trouble is the kind of error. The client gives it a sentinel.
	Trouble Trouble
	// Cause is the error itself; never nil.
	Cause error
}

// Error returns the cause's text. It holds no body, credential or query string.
func (e *Error) Error() string { return e.Cause.Error() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// UnreadKey is NewKey's error if the body naming the key could not be read. An operation may exist under this key.
type UnreadKey struct {
	Cause error // of the reading
}

// Error returns the cause's text: why the request's key could not be read.
func (e UnreadKey) Error() string { return e.Cause.Error() }

// Unwrap returns the cause.
func (e UnreadKey) Unwrap() error { return e.Cause }
