package operation

import (
	"net/http"
	"time"
)

// IsTokenLater reports whether a request for a token (a key handed out by the server) may be repeated after an answer of this status without one. (Invariant 60.)
func IsTokenLater(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusTooEarly, http.StatusTooManyRequests:
		return true
	}
	return status >= 500
}

// TokenFetched takes the result of the step FetchToken, a request for the server's key. ok: there is one; again: else another request may help. (Invariant 60.)
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

// MayKeepToken reports whether a token (a key from the server) may be written now, just before the write; sure: the journal told the time. If not, the attempts end
// without it. A written token, with MaybeSent, lets a later call send, also after the time for the first send. (Invariants 7, 8 and 60.)
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

// TokenKept takes the result of the step KeepToken. ok: the journal has the token, with MaybeSent; else nothing is sent, and the attempts end. (Invariants 7 and 60.)
func (d *Drive) TokenKept(ok bool) {
	if ok {
		d.step, d.after = Check, Send
		return
	}
	d.attempts++
	d.skip(Proof{Kind: ProvesUnsent})
}
