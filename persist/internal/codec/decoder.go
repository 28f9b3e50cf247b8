package codec

import (
	"encoding/binary"
	"fmt"
	"net/http"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// decoder reads forward. The first error sets bad. After it, every read gives zero, so callers check once.
type decoder struct {
	b    []byte
	at   int
	text string // b up to an inside body, copied once for many strings
	bad  bool
}

type bodySize struct {
	Outside
	inside int
}

// err returns persist.ErrCorrupt if anything read so far was wrong. The methods that read do not return errors: they set d.bad, and the caller asks once. part
// names the decoded part in the error.
func (d *decoder) err(part string) error {
	if d.bad {
		return fmt.Errorf("%w: %s of %d bytes cannot be read", persist.ErrCorrupt, part, len(d.b))
	}
	return nil
}

// end returns the error of a decoded part: persist.ErrCorrupt if a field was bad, or if bytes are left after the last field; else nil. part names the part in
// it.
func (d *decoder) end(part string) error {
	if d.at != len(d.b) {
		d.bad = true
	}
	return d.err(part)
}

// strings copies everything but the last keep bytes (a body) into one string, d.text. Strings read later are parts of it, so that all of them need one
// allocation.
func (d *decoder) strings(keep int) {
	if keep > len(d.b)-d.at {
		d.bad = true
		return
	}
	d.text = string(d.b[:len(d.b)-keep])
}

// take returns the next n bytes, pointing into b. If there are fewer, it sets bad and returns nil.
func (d *decoder) take(n uint64) []byte {
	if d.bad || n > uint64(len(d.b)-d.at) {
		d.bad = true
		return nil
	}
	s := d.b[d.at : d.at+int(n)]
	d.at += int(n)
	return s
}

// byte reads one byte; 0 and bad at the end.
func (d *decoder) byte() byte {
	if s := d.take(1); s != nil {
		return s[0]
	}
	return 0
}

// uvarint reads a number that binary.AppendUvarint has written; 0 and bad if there is none.
func (d *decoder) uvarint() uint64 {
	v, n := binary.Uvarint(d.b[d.at:])
	if d.bad || n <= 0 {
		d.bad = true
		return 0
	}
	d.at += n
	return v
}

// varint reads a number that binary.AppendVarint has written; 0 and bad if there is none.
func (d *decoder) varint() int64 {
	v, n := binary.Varint(d.b[d.at:])
	if d.bad || n <= 0 {
		d.bad = true
		return 0
	}
	d.at += n
	return v
}

// time reads a time in UTC, as seconds and nanoseconds. It sets bad if it is no time.
func (d *decoder) time() time.Time {
	sec, nsec := d.varint(), d.uvarint()
	if d.bad || nsec >= 1e9 {
		d.bad = true
		return time.Time{}
	}
	return time.Unix(sec, int64(nsec)).UTC()
}

// timeIf reads a time if its flag which is set in times, else it returns the zero time. times has a bit for each time that was written.
func (d *decoder) timeIf(times, which byte) time.Time {
	if times&which == 0 {
		return time.Time{}
	}
	return d.time()
}

// bytes reads a length and as many bytes. The bytes point into b.
func (d *decoder) bytes() []byte { return d.take(d.uvarint()) }

// string reads a string. It is cut out of the text prepared by the method strings (a copy of b without the body, with the same offsets), or has memory of its
// own. A string that reaches into the body is damage.
func (d *decoder) string() string {
	s := d.bytes()
	if len(d.text) == 0 {
		return string(s)
	}
	if d.at > len(d.text) {
		d.bad = true
		return ""
	}
	return d.text[d.at-len(s) : d.at]
}

// count reads the number of entries of a list. A number beyond the bytes that are left marks the data as bad: so a damaged list cannot make the
// caller allocate much memory.
func (d *decoder) count() int {
	n := d.uvarint()
	if n > uint64(len(d.b)-d.at) {
		d.bad = true
		return 0
	}
	return int(n)
}

// list reads a list of strings, as appendStrings writes it.
func (d *decoder) list() []string {
	list := make([]string, d.count())
	for i := range list {
		list[i] = d.string()
	}
	return list
}

// header reads a header, as appendHeader writes it. An empty one is not nil; nil means damage.
func (d *decoder) header() http.Header {
	n := d.count()
	h := make(http.Header, n)
	for range n {
		name := d.string()
		h[name] = d.list()
		if d.bad {
			return nil
		}
	}
	return h
}

// bodySize reads the length of a body. If outside is set, the body is stored elsewhere, and its checksum follows here. A length that no int can hold (Inline,
// the limit that keeps each body inside, is the largest int) is damage. The result has either inside or Outside, the other is zero.
func (d *decoder) bodySize(outside bool) bodySize {
	n := d.uvarint()
	if n > uint64(Inline) {
		d.bad = true
		return bodySize{}
	}
	if !outside {
		return bodySize{inside: int(n)}
	}
	sum := d.take(4)
	if d.bad {
		return bodySize{}
	}
	return bodySize{Outside: Outside{Len: int(n), Sum: binary.LittleEndian.Uint32(sum)}}
}

// body reads a body of n bytes into memory of its own; nil means damage.
func (d *decoder) body(n int) []byte {
	s := d.take(uint64(n))
	if d.bad {
		return nil
	}
	return append(make([]byte, 0, len(s)), s...)
}
