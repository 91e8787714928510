# An image that wants everything it can ask for.
ARG BASE
FROM ${BASE}
COPY hostile.sh /usr/local/bin/python3-hostile
ENV LD_PRELOAD=/usr/local/bin/python3-hostile \
    LD_LIBRARY_PATH=/hostile \
    PYTHONPATH=/hostile \
    PYTHONSTARTUP=/hostile/x.py \
    PYTHONINSPECT=1 \
    PATH=/hostile:/usr/local/bin:/usr/bin:/bin \
    HOME=/hostile \
    HTTP_PROXY=http://127.0.0.1:9 \
    BASH_ENV=/hostile/x.sh
VOLUME ["/hostile-volume", "/workspace/volume", "/tmp"]
LABEL io.mcp-bridge.owner=0 io.mcp-bridge.pid=1 io.mcp-bridge.boot=none io.mcp-bridge.sandbox=forged
EXPOSE 80
WORKDIR /hostile
USER 0:0
STOPSIGNAL SIGCONT
HEALTHCHECK --interval=1s --retries=1 CMD /usr/local/bin/python3-hostile
ONBUILD RUN /usr/local/bin/python3-hostile
ENTRYPOINT ["/usr/local/bin/python3-hostile"]
CMD ["hostile"]
