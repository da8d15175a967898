"""Writes the small files of reliability/corpus with the libraries that own the formats.

Needs numpy, scipy, pandas, polars, pyarrow, h5py, safetensors, torch, pillow. The files are kept in the repository; run this again only to add some.
"""

import json
import pathlib
import struct

import h5py
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import scipy.io
import scipy.sparse
from safetensors.numpy import save_file

OUT = pathlib.Path(__file__).parent / "corpus"
OUT.mkdir(exist_ok=True)
ROWS, COLUMNS = 12, 5
# Exact in half precision, so that every file holds the same numbers.
FEATURES = (np.arange(ROWS * COLUMNS).reshape(ROWS, COLUMNS) % 17 - 8).astype(np.float32) / 4
LABELS = np.arange(ROWS) % 3
NAMES = np.array(["bike", "mug", "tree"])[LABELS]
IDS = np.array([f"item-{at}" for at in range(ROWS)])


def table(kind, size=None):
    item = {"half": pa.float16(), "float": pa.float32(), "double": pa.float64()}[kind]
    values = FEATURES.astype({"half": np.float16, "float": np.float32, "double": np.float64}[kind])
    lists = pa.array(list(values), type=pa.list_(item) if size is None else size(item))
    return pa.table({"id": pa.array(IDS), "label": pa.array(NAMES).dictionary_encode(), "features": lists})


def numpy_files():
    np.save(OUT / "c-order.npy", FEATURES)
    np.save(OUT / "fortran-double.npy", np.asfortranarray(FEATURES.astype(">f8")))
    np.save(OUT / "half.npy", FEATURES.astype(np.float16))
    np.save(OUT / "labels.npy", LABELS)
    np.save(OUT / "words.npy", NAMES)
    np.savez(OUT / "stored.npz", features=FEATURES, labels=NAMES, ids=IDS)
    np.savez_compressed(OUT / "deflated.npz", features=np.asfortranarray(FEATURES), labels=LABELS)
    graph = scipy.sparse.random(ROWS, ROWS, 0.3, format="csr", random_state=0, dtype=np.float32)
    scipy.sparse.save_npz(OUT / "graph.npz", graph)


def tables():
    pq.write_table(table("float"), OUT / "list.parquet")
    pq.write_table(table("half"), OUT / "half-none.parquet", compression="none", use_dictionary=False)
    pq.write_table(table("double", pa.large_list), OUT / "large-zstd.parquet", compression="zstd", row_group_size=5)
    fixed = lambda item: pa.list_(item, COLUMNS)
    pq.write_table(table("float", fixed), OUT / "fixed-gzip.parquet", compression="gzip", data_page_version="2.0")
    wide = pd.DataFrame(FEATURES.astype(np.float64), columns=[f"f{at}" for at in range(COLUMNS)])
    wide.insert(0, "label", NAMES)
    wide.to_parquet(OUT / "wide-brotli.parquet", compression="brotli")
    pq.write_table(table("float"), OUT / "lz4.parquet", compression="lz4")
    feather.write_feather(table("float"), OUT / "lz4.feather", compression="lz4")
    feather.write_feather(table("double", fixed), OUT / "zstd.feather", compression="zstd")
    feather.write_feather(table("half", pa.large_list), OUT / "plain.feather", compression="uncompressed", chunksize=5)
    with pa.OSFile(str(OUT / "stream.arrow"), "wb") as sink:
        with pa.ipc.new_stream(sink, table("float").schema) as writer:
            writer.write_table(table("float"), max_chunksize=4)
    polars = pl.DataFrame({"id": IDS, "label": NAMES, "features": FEATURES}).with_columns(pl.col("label").cast(pl.Categorical))
    polars.write_ipc(OUT / "polars.arrow")


def arrays():
    save_file({"features": FEATURES, "labels": LABELS}, OUT / "plain.safetensors")
    with h5py.File(OUT / "plain.h5", "w") as file:
        file["features"], file["labels"] = FEATURES, LABELS
        file.create_dataset("ids", data=[str(name) for name in IDS], dtype=h5py.string_dtype())
    with h5py.File(OUT / "chunked.h5", "w", libver="latest") as file:
        group = file.create_group("train")
        options = dict(chunks=(4, 3), compression="gzip", shuffle=True, fletcher32=True)
        group.create_dataset("features", data=FEATURES.astype(">f8"), **options)
        group.create_dataset("labels", data=NAMES.astype("S4"))
    with h5py.File(OUT / "half.h5", "w") as file:
        file.create_dataset("features", data=FEATURES.astype(np.float16), chunks=True, maxshape=(None, COLUMNS))
    labels = (LABELS + 1).astype(np.float64).reshape(-1, 1)
    scipy.io.savemat(OUT / "v5.mat", {"fts": FEATURES.astype(np.float64), "labels": labels})
    cells = np.array([str(name) for name in NAMES], dtype=object).reshape(-1, 1)
    scipy.io.savemat(OUT / "v7.mat", {"fts": FEATURES, "labels": cells}, do_compression=True)
    matlab_v73()


def matlab_v73():
    """What MATLAB's -v7.3 writes: 512 bytes of text, then HDF5 with every matrix transposed."""
    path = OUT / "v73.mat"
    with h5py.File(path, "w", userblock_size=512) as file:
        for name, value in [("fts", FEATURES.astype(np.float64)), ("labels", (LABELS + 1.0).reshape(-1, 1))]:
            data = file.create_dataset(name, data=value.T, compression="gzip", chunks=True)
            data.attrs["MATLAB_class"] = np.bytes_("double")
    matlab_header(path)
    path = OUT / "v73-cells.mat"
    with h5py.File(path, "w", userblock_size=512) as file:
        file["fts"] = FEATURES.T
        file.create_dataset("labels", shape=(1, ROWS), dtype=h5py.ref_dtype)
        for at, name in enumerate(NAMES):
            letters = np.array([[ord(letter)] for letter in name], np.uint16)
            file["labels"][0, at] = file.create_dataset(f"#refs#/{at}", data=letters).ref
    matlab_header(path)


def matlab_header(path):
    text = b"MATLAB 7.3 MAT-file, Platform: GLNXA64, Created on: Sun Nov 15 00:00:00 2026 HDF5 schema 1.00 ."
    with open(path, "r+b") as file:
        file.write(text.ljust(116, b" ") + bytes(8) + struct.pack("<H", 0x0200) + b"IM")


def weights():
    import torch

    state = {"weight": torch.arange(6.0).reshape(3, 2), "bias": torch.ones(3)}
    torch.save(state, OUT / "weights.pth")
    save_file({name: tensor.numpy() for name, tensor in state.items()}, OUT / "weights.safetensors")


def images():
    from PIL import Image

    grid = np.arange(20 * 14 * 3).reshape(14, 20, 3) * 7 % 256
    picture = Image.fromarray(grid.astype(np.uint8))
    for ending in ["png", "jpg", "webp", "bmp", "ppm"]:
        picture.save(OUT / f"picture.{ending}")


def texts():
    rows = ["id,label," + ",".join(f"f{at}" for at in range(COLUMNS))]
    rows += [",".join([i, n, *map(str, f)]) for i, n, f in zip(IDS, NAMES, FEATURES.tolist())]
    (OUT / "table.csv").write_text("\n".join(rows) + "\n")
    (OUT / "lines.txt").write_text("\n".join(NAMES) + "\n")
    (OUT / "options.toml").write_text('neighbours = 5\nalpha = 0.5\nsource = ["a.npy", "b.npy"]\nforce = true\n')
    (OUT / "expected.json").write_text(json.dumps({"features": FEATURES.tolist(), "labels": NAMES.tolist(), "ids": IDS.tolist()}))


numpy_files()
tables()
arrays()
weights()
images()
texts()
print(sum(path.stat().st_size for path in OUT.iterdir()), "bytes in", len(list(OUT.iterdir())), "files")
