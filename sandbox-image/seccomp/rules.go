package seccomp

// Errors that refused calls end with, the same on both architectures.
const (
	eperm        = 1
	einval       = 22
	enosys       = 38
	eopnotsupp   = 95
	eafnosupport = 97
)

// A group is calls with one reason to be treated alike.
type group struct {
	why   string
	names string // separated by white space
}

// allowed are the calls that CPython, its standard library and the programs it
// starts need, whatever their arguments.
var allowed = []group{
	{"files and directories, by descriptor and by name: what may be reached is for mounts and modes to say", `
		access chdir chmod close close_range copy_file_range creat dup dup2 dup3 faccessat faccessat2 fadvise64 fallocate
		fchdir fchmod fchmodat fchmodat2 fcntl fdatasync flock fstat fstatfs fsync ftruncate futimesat getcwd getdents
		getdents64 link linkat lseek lstat mkdir mkdirat newfstatat open openat openat2 readahead readlink readlinkat
		rename renameat renameat2 rmdir sendfile stat statfs statx symlink symlinkat sync_file_range truncate umask
		unlink unlinkat utime utimensat utimes`},
	{"reading and writing", `
		pread64 preadv preadv2 pwrite64 pwritev pwritev2 read readv write writev`},
	{"extended attributes can be read; shutil asks for them", `
		fgetxattr flistxattr getxattr lgetxattr listxattr llistxattr`},
	{"memory of one's own", `
		brk mmap mprotect mremap mseal msync munmap`},
	{"anonymous files; the cgroup counts their memory", `
		memfd_create`},
	{"threads and locks", `
		futex futex_requeue futex_wait futex_waitv futex_wake get_robust_list membarrier rseq set_robust_list
		set_tid_address`},
	{"processes of the same sandbox", `
		execve exit exit_group fork getpgid getpgrp getpid getppid getsid gettid kill pidfd_open pidfd_send_signal
		setpgid setsid tgkill tkill vfork wait4 waitid`},
	{"what the C library and the processor's own ABI need of a process", `
		arch_prctl restart_syscall`},
	{"who one is; nothing here changes it", `
		capget getegid geteuid getgid getgroups getresgid getresuid getuid`},
	{"one's own limits, use and priority", `
		getcpu getpriority getrlimit getrusage ioprio_get setrlimit sysinfo times uname`},
	{"scheduling can be asked for, and the processor be given up", `
		sched_get_priority_max sched_get_priority_min sched_getaffinity sched_getattr sched_getparam
		sched_getscheduler sched_yield`},
	{"signals", `
		pause rt_sigaction rt_sigpending rt_sigprocmask rt_sigqueueinfo rt_sigreturn rt_sigsuspend rt_sigtimedwait
		sigaltstack signalfd signalfd4`},
	{"clocks and timers; nothing here sets a clock", `
		alarm clock_getres clock_gettime clock_nanosleep getitimer gettimeofday nanosleep setitimer time timer_create
		timer_delete timer_getoverrun timer_gettime timer_settime timerfd_create timerfd_gettime timerfd_settime`},
	{"waiting for events", `
		epoll_create epoll_create1 epoll_ctl epoll_pwait epoll_pwait2 epoll_wait eventfd eventfd2 poll ppoll pselect6
		select`},
	{"watching files of one's own; the kernel bounds it per user, and each sandbox is one", `
		inotify_add_watch inotify_init inotify_init1 inotify_rm_watch`},
	{"pipes, and sockets once made: see socket for which ones can be", `
		accept accept4 bind connect getpeername getsockname getsockopt listen pipe pipe2 recvfrom recvmmsg recvmsg
		sendmmsg sendmsg sendto setsockopt shutdown`},
	{"randomness", `
		getrandom`},
}

// refused are the calls that have an answer of their own.
var refused = []struct {
	group
	errno uint
}{
	{group{"what an unprivileged user is refused anyway, in the words programs expect", `
		acct add_key adjtimex bpf capset chown chroot clock_adjtime clock_settime delete_module fanotify_init
		fanotify_mark fchown fchownat finit_module fsconfig fsmount fsopen fspick init_module kcmp kexec_file_load
		kexec_load keyctl lchown mount mount_setattr move_mount name_to_handle_at open_by_handle_at open_tree
		open_tree_attr perf_event_open pidfd_getfd pivot_root process_madvise process_vm_readv process_vm_writev ptrace
		quotactl quotactl_fd reboot request_key setdomainname setfsgid setfsuid setgid setgroups sethostname setns
		setregid setresgid setresuid setreuid settimeofday setuid swapoff swapon syslog umount2 unshare vhangup`}, eperm},
	{group{"large and young parts of the kernel that nothing here needs", `
		io_uring_enter io_uring_register io_uring_setup memfd_secret userfaultfd`}, eperm},
	{group{"they tell which pages of a file others have read", `
		cachestat mincore`}, eperm},
	{group{"extended attributes cannot be written; copying tools then go on without", `
		fremovexattr fsetxattr lremovexattr lsetxattr removexattr setxattr`}, eopnotsupp},
	{group{"its flags are in memory, where a filter cannot look; the C library then uses clone", `
		clone3`}, enosys},
}

// absent are the calls that do not exist here. They could be left to the
// default, but for engines that make it EPERM: programs fall back from ENOSYS.
var absent = []group{
	{"old asynchronous files; io_uring's elder", `
		io_cancel io_destroy io_getevents io_pgetevents io_setup io_submit`},
	{"System V and POSIX message queues, semaphores and shared memory", `
		mq_getsetattr mq_notify mq_open mq_timedreceive mq_timedsend mq_unlink msgctl msgget msgrcv msgsnd semctl semget
		semop semtimedop shmat shmctl shmdt shmget`},
	{"where memory lies, and that it stays", `
		get_mempolicy map_shadow_stack mbind migrate_pages mlock mlock2 mlockall move_pages munlock munlockall
		process_mrelease remap_file_pages set_mempolicy set_mempolicy_home_node`},
	{"memory protection keys", `
		pkey_alloc pkey_free pkey_mprotect`},
	{"scheduling classes and priorities", `
		ioprio_set rseq_slice_yield sched_rr_get_interval sched_setattr sched_setparam sched_setscheduler`},
	{"moving pages between pipes and files", `
		splice tee vmsplice`},
	{"filters and security modules", `
		landlock_add_rule landlock_create_ruleset landlock_restrict_self lsm_get_self_attr lsm_list_modules
		lsm_set_self_attr seccomp`},
	{"programs by descriptor: /proc/self/fd would do, but need not be made easy", `
		execveat`},
	{"signals to single threads of others", `
		rt_tgsigqueueinfo`},
	{"attributes, mounts and namespaces by new ways", `
		file_getattr file_setattr getxattrat listmount listns listxattrat removexattrat setxattrat statmount`},
	{"all file systems at once: a lever on the host's disk", `
		sync syncfs`},
	{"segments and ports of the processor", `
		get_thread_area ioperm iopl modify_ldt set_thread_area`},
	{"probes that the kernel itself puts into programs", `
		uprobe uretprobe`},
	{"obsolete, or never there", `
		_sysctl afs_syscall create_module epoll_ctl_old epoll_wait_old get_kernel_syms getpmsg lookup_dcookie
		nfsservctl putpmsg query_module security sysfs tuxcall uselib ustat vserver`},
}

// newNamespaces are the flags of clone that make namespaces.
var newNamespaces = []uint64{
	0x00020000, // CLONE_NEWNS
	0x02000000, // CLONE_NEWCGROUP
	0x04000000, // CLONE_NEWUTS
	0x08000000, // CLONE_NEWIPC
	0x10000000, // CLONE_NEWUSER
	0x20000000, // CLONE_NEWPID
	0x40000000, // CLONE_NEWNET
}

// fileTypes are what mknod makes, but for named pipes.
var fileTypes = []uint64{
	0,      // a regular file
	0x2000, // S_IFCHR
	0x6000, // S_IFBLK
	0x8000, // S_IFREG
	0xc000, // S_IFSOCK
}

// ioctls are the requests that can be made: those for terminals, which pty and
// termios make, and those for any descriptor. TIOCSTI and TIOCLINUX, which type
// into a terminal, are not among them.
var ioctls = []struct {
	name    string
	request uint64
}{
	{"TCGETS", 0x5401},
	{"TCSETS", 0x5402},
	{"TCSETSW", 0x5403},
	{"TCSETSF", 0x5404},
	{"TCSBRK", 0x5409},
	{"TCXONC", 0x540a},
	{"TCFLSH", 0x540b},
	{"TIOCSCTTY", 0x540e},
	{"TIOCGPGRP", 0x540f},
	{"TIOCSPGRP", 0x5410},
	{"TIOCOUTQ", 0x5411},
	{"TIOCGWINSZ", 0x5413},
	{"TIOCSWINSZ", 0x5414},
	{"FIONREAD", 0x541b},
	{"FIONBIO", 0x5421},
	{"TIOCNOTTY", 0x5422},
	{"TCSBRKP", 0x5425},
	{"TIOCGSID", 0x5429},
	{"TCGETS2", 0x802c542a},
	{"TCSETS2", 0x402c542b},
	{"TCSETSW2", 0x402c542c},
	{"TCSETSF2", 0x402c542d},
	{"TIOCGPTN", 0x80045430},
	{"TIOCSPTLCK", 0x40045431},
	{"TIOCGPTPEER", 0x5441},
	{"FIONCLEX", 0x5450},
	{"FIOCLEX", 0x5451},
	{"FIOASYNC", 0x5452},
	{"FIOQSIZE", 0x5460},
}

// typing are the requests that put characters into a terminal's input.
var typing = []struct {
	name    string
	request uint64
}{
	{"TIOCSTI", 0x5412},
	{"TIOCLINUX", 0x541c},
}
