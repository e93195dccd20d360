# saddleback in a container:
#
#     docker build -t saddleback .
#     docker run --rm -v "$PWD:/work" saddleback solve wireless --out run
#
# The folder that is mounted at /work is where problem files are read and runs are written; `--user "$(id -u):$(id -g)"` makes
# the files yours.
FROM python:3.12-slim

WORKDIR /saddleback
COPY . .
RUN python -m pip install --no-cache-dir --disable-pip-version-check -c constraints.txt .

WORKDIR /work
ENTRYPOINT ["saddleback"]
CMD ["--help"]
