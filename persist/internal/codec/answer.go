package codec

import (
	"encoding/binary"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// This file encodes an answer, and the times of a progress.

// appendAnswer appends an encoded answer to b, as the last part of a record's progress (the changeable part). The answer's time stands with the other times
// of the progress. A body longer than limit stays outside (the journal stores it elsewhere): only its length and checksum are appended. Dropped lists the JSON
// values that were taken out of the body.
func appendAnswer(b []byte, a *persist.Answer, limit int) []byte {
	flags := byte(0)
	set := func(f byte, on bool) {
		if on {
			flags |= f
		}
	}
	outside := len(a.Body) > limit
	set(answerDropped, a.BodyDropped)
	set(answerReplayed, a.Replayed)
	set(answerAlreadyDone, a.AlreadyDone)
	set(answerStored, a.Stored)
	set(answerHeader, a.Header != nil)
	set(answerInside, a.Body != nil && !outside)
	set(answerOutside, outside)
	set(answerLess, len(a.Dropped) > 0)
	b = append(b, flags)
	b = appendLength(b, a.Body, outside)
	b = binary.AppendVarint(b, int64(a.Status))
	if len(a.Dropped) > 0 {
		b = appendStrings(b, a.Dropped)
	}
	if a.Header != nil {
		b = appendHeader(b, a.Header)
	}
	if !outside {
		b = append(b, a.Body...)
	}
	return b
}

// appendTimes appends a byte with one flag for each time that is set, and then these times. One more flag tells that the answer's body, longer than limit, is
// outside (stored elsewhere): so a reader of these first values knows it without the answer. The last of the seven times is that of the answer, zero without an
// answer.
func appendTimes(b []byte, r *persist.Record, limit int) []byte {
	times := [...]time.Time{r.Finished, r.NextAttempt, r.SendUntil, r.FirstSent, r.SendBefore, r.LeaseUntil, {}}
	at := len(b)
	b = append(b, 0)
	if a := r.Answer; a != nil {
		times[len(times)-1] = a.At
		if len(a.Body) > limit {
			b[at] = answerIsOutside
		}
	}
	for i, t := range times {
		if !t.IsZero() {
			b[at] |= 1 << i
			b = appendTime(b, t)
		}
	}
	return b
}
