package run

import (
	"context"
	"log/slog"
)

// This file tells Config.Logger and Config.Observe, and keeps their crashes from the caller.

// logs reports whether the logger takes lines of a level.
func (c *Config) logs(ctx context.Context, level slog.Level) bool {
	return c.Logger != nil && c.Logger.Enabled(ctx, level)
}

// log writes one line, with more attributes at its end; silent without a logger. msg is a constant of docs/telemetry.md.
func (c *Config) log(ctx context.Context, level slog.Level, msg string, key string, err error, more ...slog.Attr) {
	if c.Logger == nil {
		return
	}
	attrs := []slog.Attr{slog.String("key", key)}
	if err != nil {
		attrs = append(attrs, slog.String("error", err.Error()))
	}
	c.Logger.LogAttrs(ctx, level, "oncehttp: "+msg, append(attrs, more...)...)
}

// observe tells Config.Observe of an event outside a run, if Config.Observe is set. A crash of Config.Observe is
// logged, and does not reach the caller.
func (c *Config) observe(ctx context.Context, e *Event) {
	if c.Observe != nil {
		c.guard(ctx, "Config.Observe has crashed", func() { c.Observe(ctx, e) })
	}
}

// logCrash writes the cause and the stack of a crash; silent without a logger, and if the logger panics. msg names the work that has crashed. key may be empty.
// A stack has no values in it.
func (c *Config) logCrash(ctx context.Context, msg, key string, crashed *crash) {
	if c.Logger == nil {
		return
	}
	defer func() { _ = recover() }() // nobody is left to be told
	c.Logger.LogAttrs(ctx, slog.LevelError, "oncehttp: "+msg, slog.String("key", key),
		slog.String("error", crashed.err().Error()), slog.String("stack", string(crashed.stack)))
}

// guard calls f apart, and waits for it. It logs a crash of f, with msg, and returns it; nil if f returned.
func (c *Config) guard(ctx context.Context, msg string, f func()) *crash {
	crashed := apart(f)
	if crashed != nil {
		c.logCrash(ctx, msg, "", crashed)
	}
	return crashed
}
