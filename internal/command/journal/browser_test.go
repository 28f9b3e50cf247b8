//go:build browser

package journal

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/internal/chromium"
	"github.com/oncehttp/oncehttp/internal/command/results"
	"github.com/oncehttp/oncehttp/persist"
)

// The journal's page filters, draws what was tried, and fits a phone and a desk.
// Set REPORT_SHOTS to a folder to keep the pictures.
func TestBrowserJournalReport(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 21, 20, 0, 0, 0, time.UTC)
	held := persist.Record{
		ID: persist.ID{Key: "idemp:order:u1:o1"}, State: persist.StateHeld, HoldReason: persist.HoldStoredError, Created: at, MaybeSent: true,
		Method: "POST", Origin: "https://api.example.com:443", Target: "/payments?secret=1", Note: "asked <b>the bank</b>",
		History: []persist.Attempt{{At: at, Took: 30 * time.Second, Sent: true, Error: "no answer within Retry.AttemptTimeout"}, {At: at.Add(time.Minute), Took: time.Second, Status: 500, Sent: true}},
	}
	p := &reportPage{Journal: "payments.db", Now: at, Stats: &Stats{Operations: 4}, Left: 2, Results: []resultCount{{results.Done, 1}, {results.Held, 1}}}
	for i := range ageBuckets + 1 {
		p.Ages = append(p.Ages, ageBar{fmt.Sprint(i), i, i * 10})
	}
	p.Rows = append(p.Rows, rowOf(&held, nil))
	done := held
	done.Key, done.State, done.HoldReason, done.Answer, done.Note = "idemp:order:u2:o2", persist.StateConfirmed, "", &persist.Answer{Status: 201}, ""
	p.Rows = append(p.Rows, rowOf(&done, nil))
	path := filepath.Join(t.TempDir(), "journal.html")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.write(f); err != nil {
		t.Fatal(err)
	}
	_ = f.Close()
	c := chromium.Start(t)
	c.Open("file://" + path)
	const visible = `document.querySelectorAll('details.row:not([hidden])').length`
	c.Want(visible, "2")
	c.Eval(`document.querySelector('.chip.held').click()`)
	c.Want(visible, "1")
	c.Want(`document.querySelector('details.row:not([hidden]) code').textContent`, "idemp:order:u1:o1")
	c.Eval(`document.querySelector('.chip.held').click()`)
	c.Eval(`find.value = 'u2'; find.oninput()`)
	c.Want(`document.getElementById('shown').textContent`, "1 of 2 shown")
	c.Eval(`find.value = ''; find.oninput(); document.querySelectorAll('details').forEach((d) => { d.open = true })`)
	c.Want(`document.querySelectorAll('.try').length`, "4")
	c.Want(`document.getElementById('left').textContent`, "The 2 worst are shown; 2 more are not.")
	c.Want(`document.body.textContent.includes('asked <b>the bank</b>') && !document.body.textContent.includes('secret')`, "true")
	for _, width := range []int{1280, 400} {
		png := c.Picture(width, 900, false)
		c.Want(`document.documentElement.scrollWidth <= innerWidth`, "true")
		c.Want(`[...document.querySelectorAll('.axis i')].every((e) => e.getBoundingClientRect().width >= 2)`, "true")
		if dir := os.Getenv("REPORT_SHOTS"); dir != "" {
			if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("journal-%d.png", width)), png, 0o600); err != nil {
				t.Error(err)
			}
		}
	}
	c.NoComplaints("journal.html")
}
