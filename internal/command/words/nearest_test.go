package words

import "testing"

func TestNearest(t *testing.T) {
	t.Parallel()
	names := []string{"order_id", "amount", "currency", "supplier"}
	for text, want := range map[string]string{
		"amuont": "amount", "Amount": "amount", "amoun": "amount", "order id": "order_id", "orderid": "order_id", "curency": "currency",
		"suplyer": "supplier", "total": "", "id": "", "a": "", "": "",
	} {
		if got := Nearest(text, names); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
