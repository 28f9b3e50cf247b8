package codec

import (
	"encoding/binary"
	"net/http"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// appendLength appends the length of a body and, if the body is stored outside, its checksum. outside means that the journal stores the bytes elsewhere. A flag
// elsewhere tells an absent body from an empty one.
func appendLength(b, body []byte, outside bool) []byte {
	b = binary.AppendUvarint(b, uint64(len(body)))
	if outside {
		b = binary.LittleEndian.AppendUint32(b, Checksum(body))
	}
	return b
}

// appendTime appends the time to the nanosecond, without its zone and its monotonic reading. It does not treat the zero time specially.
func appendTime(b []byte, t time.Time) []byte {
	b = binary.AppendVarint(b, t.Unix())
	return binary.AppendUvarint(b, uint64(t.Nanosecond()))
}

// appendString appends the length of s as a varint, then s.
func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// appendBytes appends the length of s, and s.
func appendBytes(b, s []byte) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// appendStrings appends the number of the strings, and then each of them.
func appendStrings(b []byte, list []string) []byte {
	b = binary.AppendUvarint(b, uint64(len(list)))
	for _, s := range list {
		b = appendString(b, s)
	}
	return b
}

// appendHeader appends a header. Its names come in any order, since nothing compares the bytes of encoded records.
func appendHeader(b []byte, h http.Header) []byte {
	b = binary.AppendUvarint(b, uint64(len(h)))
	for name, values := range h {
		b = appendString(b, name)
		b = appendStrings(b, values)
	}
	return b
}

// appendEvidence appends an event that proves the effect of an operation: its texts, and the time at which it was stored.
func appendEvidence(b []byte, e *persist.Evidence) []byte {
	for _, s := range [...]string{e.Event, e.Type, e.By, e.Scheme, e.Digest} {
		b = appendString(b, s)
	}
	return appendTime(b, e.At)
}
