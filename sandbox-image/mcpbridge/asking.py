"""Questions to the host: to wait for, to await, or to have in flight with others."""

from . import errors
from .callback import RemoteError


class Request:
    """One question: method and params, and finish, which makes a value of the answer."""

    def __init__(self, client, method, params, finish, server=None, tool=None):
        self._client = client
        self._ask = method, params
        self._finish = finish
        self._whose = server, tool

    def wait(self):
        try:
            reply = self._client.call(*self._ask)
        except RemoteError as error:
            raise errors.of_host(error, *self._whose) from None
        return self._finish(reply)

    async def awaited(self):
        try:
            reply = await self._client.acall(*self._ask)
        except RemoteError as error:
            raise errors.of_host(error, *self._whose) from None
        return self._finish(reply)

    def start(self):
        """Ask without waiting: see callback.Client.start."""
        return self._client.start(*self._ask)

    def finished(self, call):
        """The value, once call has its answer."""
        try:
            reply = call.result()
        except RemoteError as error:
            raise errors.of_host(error, *self._whose) from None
        return self._finish(reply)

    def raw(self):
        """The same question, with the answer as it came."""
        return Request(self._client, *self._ask, _as_it_came, *self._whose)


def _as_it_came(reply):
    return reply


class Askable:
    """What makes Requests: x(...) waits, `await x.aio(...)` lets other tasks run, and
    x.raw(...) gives the answer as the server sent it."""

    def _request(self, /, *args, **kwargs):
        raise NotImplementedError

    def __call__(self, /, *args, **kwargs):
        return self._request(*args, **kwargs).wait()

    async def aio(self, /, *args, **kwargs):
        """The call for async code."""
        return await self._request(*args, **kwargs).awaited()

    @property
    def raw(self):
        """The call that returns the protocol's own result, even one that says isError."""
        return Raw(self)


class Raw(Askable):
    """See Askable.raw."""

    def __init__(self, asked):
        self._asked = asked

    def _request(self, /, *args, **kwargs):
        return self._asked._request(*args, **kwargs).raw()

    def __repr__(self):
        return f"<raw results of {self._asked!r}>"


class method:
    """A method of a class that asks the host: written as what returns the Request."""

    def __init__(self, prepare):
        self._prepare = prepare
        self.__doc__ = prepare.__doc__

    def __get__(self, owner, _kind=None):
        return self if owner is None else Method(owner, self._prepare)


class Method(Askable):
    """A method, bound to its object."""

    def __init__(self, owner, prepare):
        self._owner = owner
        self._prepare = prepare
        self.__doc__ = prepare.__doc__
        self.__name__ = prepare.__name__

    def _request(self, /, *args, **kwargs):
        try:
            return self._prepare(self._owner, *args, **kwargs)
        except TypeError as error:
            trouble = error
        try:
            self.__signature__.bind(*args, **kwargs)
        except TypeError as error:  # which names the arguments that there are
            trouble = TypeError(f"{self.__name__}{self.__signature__}: {error}")
        raise trouble from None

    @property
    def __signature__(self):
        import inspect

        return inspect.signature(self._prepare.__get__(self._owner))

    def __reduce__(self):
        return getattr, (self._owner, self.__name__)

    def __repr__(self):
        return f"{self.__name__}{self.__signature__}   {(self.__doc__ or '').strip().split(chr(10))[0]}"

    def _help(self):
        return described(self)


def described(function):
    """What help() prints of a function of ours."""
    import inspect

    return f"{function.__name__}{inspect.signature(function)}\n\n{inspect.getdoc(function) or ''}".rstrip()
