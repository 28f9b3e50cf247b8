package send

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/command/session"
	"github.com/oncehttp/oncehttp/internal/command/view"
	"github.com/oncehttp/oncehttp/internal/request"
)

// explained adds to the error of a key that belongs to another request the names of what differs: the method, the server, the path or query, members of the body, or
// a header. It never adds their values. Any other error it returns unchanged, and so one whose record cannot be read or compared.
func explained(ctx context.Context, ses *session.Session, cfg oncehttp.Config, req *http.Request, err error) error {
	var e *oncehttp.Error
	if !errors.Is(err, oncehttp.ErrKeyReused) || !errors.As(err, &e) || e.Sends > 0 || ses.Journal == nil {
		return err
	}
	cfg.KeepFields = nil // of a request that is only compared
	probe, broken := session.OpenUnjournaled(cfg)
	if broken != nil {
		return err
	}
	prepared, broken := probe.Client.Prepare(req, e.Key)
	if broken != nil {
		return err
	}
	standing, broken := ses.Journal.Get(ctx, prepared.ID)
	if broken != nil || request.Same(&prepared, &standing) {
		return err
	}
	return fmt.Errorf("%w; what differs: %s", err, view.Differences(&prepared, &standing))
}
