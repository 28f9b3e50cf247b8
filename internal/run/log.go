package run

import (
	"context"
	"log/slog"
)

// logs reports whether the logger takes lines of a level.
func (c *Config) logs(ctx context.Context, level slog.Level) bool {
	return c.Logger != nil && c.Logger.Enabled(ctx, level)
}

// logAttempt logs the result of an attempt, as it stands after lookups.
func (r *run) logAttempt() {
	if !r.cfg.logs(r.call.Values(), slog.LevelDebug) {
		return
	}
	attrs := []slog.Attr{slog.Int("attempt", r.drive.Attempts()), slog.Int("sends", r.sends()), slog.String("outcome", r.known().String())}
	if r.own.Answer != nil {
		attrs = append(attrs, slog.Int("status", r.own.Answer.Head.StatusCode))
	}
	r.cfg.log(r.call.Values(), slog.LevelDebug, "an attempt has ended", r.rec.Key, r.own.Err, attrs...)
}

// logEnd logs the result of a run with more than one attempt, or with an error.
func (r *run) logEnd(res *result) {
	if r.drive.Attempts() <= 1 && res.err == nil || !r.cfg.logs(r.call.Values(), slog.LevelInfo) {
		return
	}
	r.cfg.log(r.call.Values(), slog.LevelInfo, "an operation took more than one attempt, or has an error", r.rec.Key, res.err,
		slog.Int("attempts", r.drive.Attempts()), slog.Int("sends", r.sends()), slog.String("outcome", r.known().String()))
}
