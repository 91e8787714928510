package container

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"syscall"
	"time"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/internal/local"
)

// start takes every step up to an attested sandbox. What a failed start leaves
// is for destroy. ctx is looked at between the steps, and while waiting for the
// program; requests are not cut short.
func (s *sandbox) start(ctx context.Context, spec runtime.Spec) error {
	api, err := s.engine.Connect(ctx)
	if err != nil {
		return err
	}
	s.host = api.Host()
	if s.transport, err = s.engine.transport(s.host); err != nil {
		return err
	}
	if s.host.Remote && len(spec.Binds) > 0 {
		return s.engine.fail.New("mount folders", fmt.Errorf("%w: the engine is on another machine, or in a virtual one, where they are not", runtime.ErrNoBinds),
			"leave out --mount, and write what is needed to the workspace; or use an engine on this machine")
	}
	if missing := s.host.Missing; len(missing) > 0 && !spec.AllowUnlimited {
		return s.engine.Refuse(missing...)
	}
	if err := s.identify(spec.Binds); err != nil {
		return err
	}
	placement, err := s.place(ctx, spec)
	if err != nil {
		return err
	}
	explain := s.engine.opts.Driver.Explain
	if err := s.create(ctx, api, placement); err != nil {
		return explain("create container", spec.Image, err)
	}
	if err := s.prepare(ctx, api); err != nil {
		return explain("start container", spec.Image, err)
	}
	if err := s.run(ctx, api); err != nil {
		return explain("start container", spec.Image, err)
	}
	if err := s.await(ctx, spec); err != nil {
		return err
	}
	return s.attest(ctx, spec)
}

// identify notes which folders are to be shown, for what is at their paths may
// be another one by the time the engine looks.
func (s *sandbox) identify(binds []runtime.Bind) error {
	s.folders = map[string]runtime.Folder{}
	for _, b := range binds {
		folder, err := local.FolderOf(b.Source)
		if err != nil {
			return s.engine.fail.New("mount folders", fmt.Errorf("%w: %w", runtime.ErrNoBinds, err), "is it a folder that you can enter?")
		}
		s.folders[b.Target] = folder
	}
	return nil
}

// transport returns what the operator and the host leave to choose from.
func (e *Engine) transport(host Host) (runtime.Transport, error) {
	switch asked := e.opts.Transport; {
	case asked == runtime.TransportStdio, host.Remote && (asked == "" || asked == runtime.TransportAuto):
		return runtime.TransportStdio, nil
	case host.Remote:
		return "", e.fail.New("choose transport", fmt.Errorf("there is no transport %s to an engine elsewhere: use auto or stdio", asked),
			"use --transport auto or stdio")
	}
	return runtime.TransportSocket, nil
}

// place makes the host's part of the sandbox.
func (s *sandbox) place(ctx context.Context, spec runtime.Spec) (Placement, error) {
	var err error
	if s.uid, err = s.engine.takeUID(s.host.FirstUID, s.host.LastUID); err != nil {
		return Placement{}, err
	}
	if err := s.makeDir(ctx, spec); err != nil {
		return Placement{}, err
	}
	hardLimit := local.HardLimit
	if s.host.Remote {
		hardLimit = func(string) (int64, error) { return runtime.Unlimited, nil } // ours say nothing there
	}
	rlimits, err := clampRlimits(spec.Limits, extraRlimits(s.host, spec.Limits), hardLimit)
	if err != nil {
		return Placement{}, err
	}
	argument := string(s.transport)
	if s.transport == runtime.TransportSocket {
		argument += ":" + runtime.SocketPath
	}
	labels := map[string]string{local.LabelSandbox: s.id}
	maps.Copy(labels, s.engine.self.Labels())
	return Placement{
		ID: s.id, Spec: spec, UID: s.uid, Labels: labels, Dir: s.dir, Rlimits: rlimits,
		Command: append(slices.Clip(spec.Command), argument), Transport: s.transport,
	}, nil
}

// makeDir makes the host's directory, with what the transport needs in it.
func (s *sandbox) makeDir(ctx context.Context, spec runtime.Spec) error {
	if s.host.Remote {
		return nil
	}
	if s.transport == runtime.TransportStdio {
		spec.Files = nil // they go before the streams
	}
	var err error
	if s.dir, err = s.engine.newSandboxDir(ctx, s.id, spec); err != nil || s.transport != runtime.TransportSocket {
		return err
	}
	s.socket, err = s.dir.Listen(path.Base(runtime.SocketPath))
	return err
}

// minData is the least limit of a process's data that OCI runtimes, which set it
// on themselves before they run the program, can work with: runc needs 80 MiB.
const minData = 128 << 20

// extraRlimits bound the memory of each process where nothing bounds that of
// all.
func extraRlimits(host Host, l runtime.Limits) map[string]int64 {
	if len(host.Missing) == 0 {
		return nil
	}
	return map[string]int64{"data": max(l.MemoryBytes, minData)}
}

// clampRlimits never asks for more than hardLimit: raising a limit needs
// CAP_SYS_RESOURCE, which not even root has everywhere. None is left to the
// engine's default, for the same reason.
func clampRlimits(l runtime.Limits, extra map[string]int64, hardLimit func(string) (int64, error)) (map[string]int64, error) {
	rlimits := l.Rlimits()
	maps.Copy(rlimits, extra)
	for name, want := range rlimits {
		hard, err := hardLimit(name)
		if err != nil {
			return nil, err
		}
		if hard != runtime.Unlimited {
			rlimits[name] = min(want, hard)
		}
	}
	return rlimits, nil
}

// patient returns a context for a request that should not be cut short, for the
// service would go on with it behind our back. It outlives ctx by a grace, so
// that a service which hangs does not hang its caller.
func patient(ctx context.Context) (context.Context, context.CancelFunc) {
	whole, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTimeout)
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(requestGrace, cancel) })
	return whole, func() {
		stop()
		cancel()
	}
}

// givenUp returns err, or why ctx has ended if the patient request came to an
// end of that.
func givenUp(ctx, whole context.Context, err error) error {
	if err != nil && whole.Err() != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

func (s *sandbox) create(ctx context.Context, api API, p Placement) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	whole, cancel := patient(ctx)
	defer cancel()
	s.created = true
	return givenUp(ctx, whole, api.Create(whole, p))
}

// prepare has the container made up to the point where its program would run.
func (s *sandbox) prepare(ctx context.Context, api API) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	whole, cancel := patient(ctx)
	defer cancel()
	info, err := api.Prepare(whole, s.id)
	if err != nil {
		return givenUp(ctx, whole, err)
	}
	if err := s.attach(ctx, api); err != nil {
		return err
	}
	if info.PID == 0 || s.host.Remote {
		return nil
	}
	return s.hold(ctx, info)
}

// attach joins the program's stdio. It fails only where more than diagnosis
// depends on it.
func (s *sandbox) attach(ctx context.Context, api API) error {
	stream, err := api.Attach(ctx, s.id, s.transport == runtime.TransportStdio)
	if err == nil {
		s.stdio = newStdio(stream, &s.tail)
		if s.transport != runtime.TransportStdio {
			go io.Copy(&s.tail, s.stdio) //nolint:errcheck // however it ends
		}
		return nil
	}
	if s.transport == runtime.TransportStdio {
		return err
	}
	s.engine.opts.Logger.WarnContext(ctx, "cannot read the program's stderr", "sandbox_id", s.id, "error", err)
	return nil
}

// hold takes hold of the process that is, or will become, the program.
func (s *sandbox) hold(ctx context.Context, info Info) error {
	process, err := local.OpenProcess(info.PID)
	if err != nil {
		return s.engine.unreadable(err)
	}
	if s.cgroup, err = local.CgroupOf(info.PID); err != nil {
		return errors.Join(s.engine.unreadable(err), process.Close())
	}
	s.oomKills = s.cgroup.OOMKills()
	s.info, s.process, s.ended = info, process, process.Done()
	s.exited = make(chan struct{})
	ctx, s.unwatch = context.WithCancel(context.WithoutCancel(ctx))
	go s.watch(ctx)
	return nil
}

// run runs the program.
func (s *sandbox) run(ctx context.Context, api API) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	whole, cancel := patient(ctx)
	defer cancel()
	if err := api.Start(whole, s.id); err != nil || s.process != nil {
		return givenUp(ctx, whole, err)
	}
	info, err := api.Inspect(whole, s.id)
	if err == nil && info.PID != 0 {
		if s.host.Remote {
			s.follow(ctx, info)
		} else {
			err = s.hold(ctx, info)
		}
		if err == nil {
			return nil
		}
	}
	if err != nil && !gone(err) {
		return err
	}
	s.exited = make(chan struct{})
	s.exit.Code = -1
	if err := s.ask(whole, api, true); err != nil {
		s.engine.opts.Logger.DebugContext(ctx, "exit unknown", "sandbox_id", s.id, "error", err)
	}
	close(s.exited)
	return s.exitError()
}

// gone reports whether err says that there is no such container or process any more.
func gone(err error) bool {
	return errors.Is(err, ErrNotFound) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH)
}

// await waits until the program has connected.
func (s *sandbox) await(ctx context.Context, spec runtime.Spec) error {
	late := fmt.Errorf("program did not connect within %v", spec.ConnectTimeout)
	ctx, cancel := context.WithTimeoutCause(ctx, spec.ConnectTimeout, late)
	defer cancel()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	go func() {
		select {
		case <-s.ended:
			stop(errStopped)
		case <-ctx.Done():
		}
	}()
	connect := s.accept
	if s.transport == runtime.TransportStdio {
		connect = s.converse
	}
	err := connect(ctx, spec)
	// A program may have ended because we have given up on it.
	given := context.Cause(ctx)
	if given != nil && !errors.Is(given, errStopped) {
		err = given
	} else if errors.Is(err, errStopped) || s.hasEnded() {
		return s.exitError()
	}
	if err != nil {
		return s.engine.fail.New("wait for the program", s.withOutput(err), "")
	}
	return nil
}

// accept waits for the program's two connections.
func (s *sandbox) accept(ctx context.Context, _ runtime.Spec) error {
	control, callback, err := s.socket.AcceptPair(ctx, s.allowed)
	if err != nil {
		return err
	}
	s.control, s.callback = control, callback
	return s.socket.Close() // from now on there is no way in
}

// allowed admits the container's first process only. The user id is attested
// later, and with it that it is the one of this sandbox.
func (s *sandbox) allowed(peer local.Peer) error {
	if peer.PID != int64(s.process.PID) {
		return fmt.Errorf("connection of process %d, want %d", peer.PID, s.process.PID)
	}
	return nil
}

// attest compares what is in force with the spec.
func (s *sandbox) attest(ctx context.Context, spec runtime.Spec) error {
	facts, err := s.facts()
	if s.hasEnded() {
		return s.exitError()
	}
	if err != nil {
		return s.engine.unreadable(err)
	}
	if facts.Env == nil { // a rootless engine's, which /proc does not show us
		facts.Env = s.info.Env
	}
	facts.Settings = s.info.Settings
	want := s.host.Expectation
	want.Spec, want.UID, want.GID, want.Transport = spec, s.uid, s.uid, s.transport
	want.Folders = s.folders
	want.Rlimits = extraRlimits(s.host, spec.Limits)
	if s.host.Remote { // what is there to be covered is not known, nor need the engine's files be here
		want.Covered, want.UnknownProfile = nil, true
	} else {
		want.Covered = local.Existing(want.Covered)
	}
	differences := append(runtime.Attest(want, facts), s.info.Differences...)
	if len(differences) > 0 {
		return s.engine.Refuse(differences...)
	}
	if without := runtime.AttestLimits(spec, facts.Cgroup); len(without) > 0 { // it is allowed, or we would not be here
		s.engine.opts.Logger.WarnContext(ctx, "sandbox without all of its limits", "sandbox_id", s.id, "not_in_force", without)
	}
	return nil
}

// facts come from this kernel's /proc, or else from the program and, as to the
// limits that no program can see, from the engine.
func (s *sandbox) facts() (runtime.Facts, error) {
	if !s.host.Remote {
		return local.ReadFacts(s.process.PID)
	}
	facts, err := local.ReportFacts(s.report)
	facts.Cgroup = s.info.Limits
	return facts, err
}

func (s *sandbox) hasEnded() bool {
	if s.process != nil {
		return !s.process.Alive()
	}
	select {
	case <-s.ended:
		return true
	default:
		return false
	}
}
