package operation

import (
	"net/http"
	"time"
)

// This file holds the steps of a token that the server gives out before the first send.

// IsTokenLater reports whether another request for a token may help after an answer with this status and without a token. (Invariant 60.)
func IsTokenLater(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusTooEarly, http.StatusTooManyRequests:
		return true
	}
	return status >= 500
}

// TokenFetched takes the result of a request for a token. ok: there is a token; again: another request may help. (Invariant 60.)
func (d *Drive) TokenFetched(ok, again bool, sent Sent) {
	halted := d.count(sent)
	d.hint = sent.Hint
	if ok {
		d.step = KeepToken
		return
	}
	d.attempts++
	d.skip(Proof{Kind: ProvesUnsent, Again: again && !halted})
}

// MayKeepToken reports whether the token may be written now. It is asked just before the write; sure: the journal told the time. If it reports
// false, the drive ends without the token. A written token, with MaybeSent, lets the next drive send, also after the time for the first
// send. (Invariants 7, 8 and 60.)
func (d *Drive) MayKeepToken(sure bool, now time.Time) bool {
	switch {
	case !sure:
		d.halt(Unsure, Proof{})
	case d.op.TooOld(now): // an operation in doubt has its token
		d.halt(TooOld, d.late())
	default:
		return true
	}
	return false
}

// TokenKept takes the result of the write. ok: the journal has the token, with MaybeSent. (Invariants 7 and 60.)
func (d *Drive) TokenKept(ok bool) {
	if ok {
		d.step, d.after = Check, Send
		return
	}
	d.attempts++
	d.skip(Proof{Kind: ProvesUnsent})
}
