package request

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"slices"

	"github.com/oncehttp/oncehttp/internal/sanitize"
)

// Bodies reads and closes the bodies of requests. It is immutable and safe for concurrent use. The zero value takes no byte.
type Bodies struct {
	// Max bounds the bytes of a body.
	Max int64
	// Crashed is told of a body after it panicked, or ended its goroutine (value is nil), if the caller has left by then; nil:
	// nobody is told.
	Crashed func(ctx context.Context, value any, stack []byte)
}

// errTooLarge is a body over the limit.
var errTooLarge = errors.New("body is larger than MaxRequestBytes")

// read reads the whole body, at most Max bytes. If Body was read or closed before, it reads the body of GetBody. If
// ContentLength is positive, the length must match. If the request's context ends first, it returns an error, and another
// goroutine may still be reading. The caller closes req.Body with close, and gives it this error.
//
// A body of no byte, without GetBody and length, is empty if plain is true, as it is to net/http. Else it is an error, since it may have been read before.
// Only a body that may block is read in another goroutine.
func (b *Bodies) read(req *http.Request, plain bool) ([]byte, error) {
	if !mayBlock(req) {
		body, err := readBytes(req, b.Max, plain)
		return body, bodyTrouble(err)
	}
	body, err := b.readWithin(req, func() ([]byte, error) { return readBytes(req, b.Max, plain) })
	return body, bodyTrouble(err)
}

// Shown returns the copy of a request for functions of the user. It has no Body, since Body can be read only once, and a
// bounded GetBody, if the request has one.
func (b *Bodies) Shown(req *http.Request) *http.Request {
	shown := req.Clone(req.Context())
	shown.Body, shown.ContentLength, shown.GetBody = nil, 0, b.again(req)
	return shown
}

// again returns a GetBody for a copy; nil if the request has none. The GetBody reads at most Max bytes and ends with
// the request's context.
func (b *Bodies) again(req *http.Request) func() (io.ReadCloser, error) {
	if req.Body == nil || req.Body == http.NoBody {
		return func() (io.ReadCloser, error) { return http.NoBody, nil }
	}
	if req.GetBody == nil {
		return nil
	}
	return func() (io.ReadCloser, error) {
		body, err := b.readWithin(req, func() ([]byte, error) {
			body, err := req.GetBody()
			if err != nil {
				return nil, err
			}
			if body == nil {
				return nil, errors.New("neither a body nor an error")
			}
			defer body.Close()
			return readUnsized(body, b.Max)
		})
		return bytesBody(body), err
	}
}

// bodyTrouble returns an error of reading a body as an *Error of this package, with its kind; nil for nil.
func bodyTrouble(err error) error {
	if err == nil {
		return nil
	}
	var known *Error
	switch {
	case errors.As(err, &known): // of readWithin, or of a body read before by CarriesKey
		return known
	case errors.Is(err, errTooLarge):
		return &Error{BodyTooLarge, err}
	}
	return &Error{Invalid, err}
}

// readBytes reads the body of a request. A body that was read to its end before, by an earlier send, is read again from GetBody; without that, it is
// an error, unless plain is set. It closes the body of GetBody, and leaves req.Body open.
func readBytes(req *http.Request, limit int64, plain bool) ([]byte, error) {
	given := req.Body
	if given == nil {
		given = http.NoBody
	}
	if given == http.NoBody && req.ContentLength <= 0 {
		return nil, nil
	}
	if req.ContentLength > limit {
		return nil, fmt.Errorf("%w: %d bytes, limit %d", errTooLarge, req.ContentLength, limit)
	}
	body, err := readOnce(given, req.ContentLength, limit)
	switch usedUp := len(body) == 0 && (err == nil || isOver(err)); {
	case !usedUp:
		return body, err
	case req.GetBody == nil && err == nil && plain:
		return nil, nil
	case req.GetBody == nil && err == nil:
		return nil, errors.New("reading the body: it gives no byte, its length is not known, and there is no GetBody; http.NoBody is an empty body")
	case req.GetBody == nil:
		return nil, err
	}
	again, err := req.GetBody()
	if err != nil {
		return nil, fmt.Errorf("from GetBody: %w", sanitize.Error(err))
	}
	if again == nil {
		return nil, errors.New("from GetBody: neither a body nor an error")
	}
	defer again.Close()
	return readOnce(again, req.ContentLength, limit)
}

// isOver reports whether a body gave nothing because it had been read or closed before.
func isOver(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, http.ErrBodyReadAfterClose) || errors.Is(err, fs.ErrClosed)
}

// readOnce reads r to its end. size is the required length, or at most zero if the length is not known. Beside an error the
// bytes show how far it came.
func readOnce(r io.Reader, size, limit int64) ([]byte, error) {
	if size <= 0 {
		return readUnsized(r, limit)
	}
	body := make([]byte, size)
	n, err := io.ReadFull(r, body)
	if err != nil {
		return body[:n], fmt.Errorf("reading the body: %d of %d bytes: %w", n, size, sanitize.Error(err))
	}
	var more [1]byte
	if n, _ := r.Read(more[:]); n > 0 {
		return body, fmt.Errorf("body is longer than its Content-Length of %d", size)
	}
	return body, nil
}

// readUnsized reads a body of unknown length, of at most limit bytes, in chunks, and joins them once. So the peak
// is twice the body, and not three times as with a doubling buffer. Beside an error of r it returns the bytes
// before it; over the limit, none.
func readUnsized(r io.Reader, limit int64) ([]byte, error) {
	var chunks [][]byte
	var total int64
	for size := int64(4 << 10); ; size = min(2*size, 1<<20) {
		chunk := make([]byte, min(size, limit+1-total))
		n, err := fill(r, chunk)
		total += int64(n)
		chunks = append(chunks, chunk[:n])
		switch {
		case total > limit:
			return nil, fmt.Errorf("%w: more than %d bytes", errTooLarge, limit)
		case err == io.EOF:
			return slices.Concat(chunks...), nil
		case err != nil:
			return slices.Concat(chunks...), fmt.Errorf("reading the body: %w", sanitize.Error(err))
		}
	}
}

// fill reads until b is full or r gives an error. It returns this error as it is. io.ReadFull makes io.ErrUnexpectedEOF of an
// end within b; the body of an inbound request gives the same error if its sender went away.
func fill(r io.Reader, b []byte) (n int, err error) {
	for n < len(b) && err == nil {
		var more int
		more, err = r.Read(b[n:])
		n += more
	}
	return n, err
}

// bytesBody returns bytes as a request's body. net/http knows this pair of types as a body in memory, and sends it in one write
// with the headers.
func bytesBody(b []byte) io.ReadCloser { return io.NopCloser(bytes.NewReader(b)) }

// failedBody is a body after a failed read.
type failedBody struct{ err error }

// Read returns the error of the body, and no bytes.
func (b failedBody) Read([]byte) (int, error) { return 0, b.err }

// Close does nothing: there is no body to close.
func (b failedBody) Close() error { return nil }
