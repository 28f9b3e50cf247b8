package operation

import "net/http"

// This file decides about another attempt after an answer that refuses the credentials of the last one.

// RefusesCredentials reports whether an answer with this status refuses the credentials of its request, whatever the operation is. A 403 may be about
// the operation itself. (Invariant 63.)
func RefusesCredentials(status int) bool {
	return status == http.StatusUnauthorized || status == http.StatusProxyAuthRequired
}

// mayAskSource reports whether the source of the credentials is asked once more after such an answer. The send had no effect, and its key protects
// another one. An operation in doubt stays in doubt. Each call asks once, and only if an attempt is left. (Invariants 2, 49 and 63.)
func (d *Drive) mayAskSource() bool {
	spent := d.Spent()
	return d.op.Protected && !spent.Source && spent.Attempts < d.client.MaxAttempts &&
		d.proof.Hold == "" && (d.proof.Kind == ProvesRefusal || d.proof.Kind == ProvesNothing && d.doubtBefore)
}

// SourceAsked takes the result of the step AskSource. other: the source gave other credentials than the refused ones. Then another attempt follows at
// once, within the bounds of any attempt. (Invariant 63.)
func (d *Drive) SourceAsked(other bool) {
	d.source, d.atOnce = true, other
	d.proof.Again = d.proof.Again || other
	d.goOn()
}
